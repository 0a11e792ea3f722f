"""Default texts of the participant's pages; study.toml can replace each, in any language."""

from __future__ import annotations

from msgspec import Struct, structs

from lore_active.questions.kinds import Kind


class Texts(Struct, forbid_unknown_fields=True, frozen=True):
    """Texts of the participant's pages; a blank line starts a new paragraph."""

    consent_title: str = "Before you begin"
    consent: str = (
        "You will be asked which of two things is more like a third. There are no right or wrong "
        "answers: we are interested in how things seem to you.\n\n"
        "Your answers and your response times are stored without your name. You may stop at "
        "any time by closing this page."
    )
    agree: str = "I agree and want to take part"
    decline: str = "I do not want to take part"
    instructions_title: str = "What to do"
    instructions: str = (
        "Each time you will see one item and two others. Choose the one of the two that is more "
        "like the first.\n\n"
        "Go with your first impression; each answer should take only a few seconds."
    )
    example: str = "Example of a question: one item and two others; the one on the left is chosen."
    how_to_answer: str = "Click the one you choose, or press the left or right arrow key."
    how_to_answer_touch: str = "Tap the one you choose."
    begin: str = "Begin"
    practice_note: str = "Practice"
    practice_right: str = "Yes, most people choose this one."
    practice_wrong: str = "Most people choose the other one."
    practice_skipped: str = (
        "That's fine if you really can't tell. Most people choose the one marked here."
    )
    practice_timed_out: str = (
        "You ran out of time on that one. Most people choose the one marked here."
    )
    your_choice: str = "Your choice"
    usual_choice: str = "Most people's choice"
    ready_title: str = "Ready?"
    practice_done: str = "That was the practice. Now the real questions begin."
    cant_tell: str = "I can't tell"
    progress: str = "{done} of {all}"
    minutes_left: str = "about {minutes} min left"
    last_minute: str = "less than a minute left"
    break_title: str = "Time for a break"
    break_text: str = "Rest your eyes for a moment. Continue when you are ready."
    slow_down_title: str = "Take your time"
    slow_down: str = (
        "Your last answers were very fast. There is no hurry: please look at all three items "
        "before you choose."
    )
    go_on: str = "Continue"
    feedback_title: str = "One last thing"
    feedback: str = "Is there anything you would like to tell us? You can leave this blank."
    send: str = "Send and finish"
    finished_title: str = "Thank you for taking part"
    finished: str = "You have finished the study, and your answers are stored."
    code: str = "Your completion code:"
    copy: str = "Copy code"
    copied: str = "Code copied."
    copy_failed: str = (
        "Your browser does not allow copying. The code is selected, so that you can copy it "
        "yourself."
    )
    redirect: str = "Return to the recruitment site"
    returning: str = "You will return to the recruitment site in {seconds} seconds."
    stay: str = "Stay on this page"
    debrief_title: str = "What this study is about"
    debrief: str = ""
    map_title: str = "The map so far"
    map: str = "Items that participants find similar are close together."
    map_list: str = "Show the map as a list"
    map_nearest: str = "{item}: closest to {other}"
    declined_title: str = "No problem"
    declined: str = "You have chosen not to take part. No answers were collected."
    changed_mind: str = "I changed my mind"
    leave: str = "Leave the study"
    paused_title: str = "The study is paused"
    paused: str = "Any answers that you gave are stored. Please try again soon."
    full_title: str = "This study has closed"
    full: str = "It is not taking any more participants. Thank you for your interest."
    expired_title: str = "This study has closed"
    expired: str = (
        "The study closed while you were away. Any answers that you gave are stored. "
        "Thank you for taking part."
    )
    unknown_title: str = "We can't find this study"
    unknown: str = "Please check the link that you were given."
    already_title: str = "You have already taken part"
    already: str = "Each person can take part only once. Thank you for taking part."
    elsewhere_title: str = "The study continues in another window"
    elsewhere: str = (
        "You have opened this study in another tab or window, and it continues there. Answers "
        "given in this window are no longer stored. To use this window instead, continue here."
    )
    go_on_here: str = "Continue here"
    taken_over: str = "This study was also open in another window. It will continue here."
    preview_title: str = "Preview"
    preview: str = "This is a preview. Accept the task to begin."
    trouble_title: str = "We're having a technical problem"
    trouble: str = (
        "There is a technical problem on our side, so your last step may not have been saved. "
        "Please try again in a moment."
    )
    try_again: str = "Try again"
    error_title: str = "Something went wrong"
    error: str = "Your answers are safe."
    back: str = "Back to the study"
    offline: str = "The connection was lost. Your answer is kept and will be sent again."
    loading: str = "One moment, please …"
    timed_out: str = "You ran out of time on that one. Here is the next."
    not_taken: str = (
        "That answer could not be accepted and was not stored. Please choose one of the two."
    )
    play: str = "Play"
    play_first: str = "Please play each of them once before you choose."
    anchor_label: str = "Compare with this"
    left_label: str = "Left"
    right_label: str = "Right"
    option_label: str = "Option {number}"
    image_name: str = "Image {letter}"
    chosen_count: str = "{chosen} of {pick} chosen"
    place: str = "Place {place}"
    undo_first: str = "To choose another one, undo one first."
    incomplete: str = "Please choose {pick} different ones, then continue."


NUMBERS = (
    *("no", "one", "two", "three", "four", "five", "six"),
    *("seven", "eight", "nine", "ten", "eleven", "twelve"),
)
# Texts of kinds with several options that name numbers, and nothing else in braces.
WORDED = ("instructions", "example", "not_taken")
NO_RIGHT = (
    "There are no right or wrong answers: we are interested in how things seem to you.\n\n"
    "Your answers and your response times are stored without your name. You may stop at "
    "any time by closing this page."
)
FIRST_IMPRESSION = "\n\nGo with your first impression; each answer should take only a few seconds."
ONE = {
    "how_to_answer": "Click the one you choose, or press its number.",
    "not_taken": "That answer could not be accepted and was not stored. Please choose one.",
    "slow_down": "Your last answers were very fast. There is no hurry: please look at all the "
    "items before you choose.",
    "practice_wrong": "Most people choose the one marked here.",
    "incomplete": "Please choose one.",
}
SEVERAL = ONE | {
    "how_to_answer": "Click the ones you choose, or press their numbers; again, to undo a choice. "
    "Then click Continue or press Enter.",
    "how_to_answer_touch": "Tap the ones you choose; tap one again to undo it. Then tap Continue.",
    "not_taken": "That answer could not be accepted and was not stored. Please choose {pick}.",
    "practice_right": "Yes, your choices include the one that most people choose.",
    "practice_wrong": "Most people choose what is marked here.",
    "practice_skipped": "That's fine if you really can't tell. Most people choose what is marked "
    "here.",
    "practice_timed_out": "You ran out of time on that one. Most people choose what is marked "
    "here.",
    "incomplete": "Please choose {pick} different ones, then continue.",
}
CHOOSE = {
    "consent": f"You will be asked which of several things are most like another one. {NO_RIGHT}",
    "instructions": "Each time you will see one item and {options} others. Choose the {pick} that "
    f"are most like the first, in any order.{FIRST_IMPRESSION}",
    "example": "Example of a question: one item and {options} others, of which {pick} are chosen.",
}
CHOOSE_ONE = {
    "consent": f"You will be asked which of several things is most like another one. {NO_RIGHT}",
    "instructions": "Each time you will see one item and {options} others. Choose the one that is "
    f"most like the first.{FIRST_IMPRESSION}",
    "example": "Example of a question: one item and {options} others, one of which is chosen.",
}
RANK = {
    "consent": CHOOSE["consent"],
    "instructions": "Each time you will see one item and {options} others. Choose the {pick} that "
    "are most like the first, beginning with the most similar one. Their places are shown as "
    f"numbers.{FIRST_IMPRESSION}",
    "example": "Example of a question: one item and {options} others, of which {pick} are chosen, "
    "with their places as numbers.",
}
ODD = {
    "consent": f"You will be asked which of three things is least like the other two. {NO_RIGHT}",
    "instructions": "Each time you will see three items. Choose the one that is least like the "
    f"other two.{FIRST_IMPRESSION}",
    "example": "Example of a question: three items; the one that differs is chosen.",
}


def kind_texts(kind: Kind) -> dict[str, str]:
    """Return the default texts of a kind of question that differ from those of triplets."""
    if kind.name == "triplet":
        return {}
    if kind.name == "odd-one-out":
        own = ONE | ODD
    elif kind.pick == 1:
        own = ONE | CHOOSE_ONE
    else:
        own = SEVERAL | (RANK if kind.ordered else CHOOSE)
    pick, options = NUMBERS[kind.pick], NUMBERS[kind.options]
    worded = {name: own[name].format(pick=pick, options=options) for name in WORDED}
    return own | worded


def texts_for(texts: Texts, kind: Kind) -> Texts:
    """Replace texts that are as the default for triplets by the default for this kind."""
    own = {
        name: text
        for name, text in kind_texts(kind).items()
        if getattr(texts, name) == getattr(DEFAULTS, name)
    }
    return structs.replace(texts, **own)


DEFAULTS = Texts()
