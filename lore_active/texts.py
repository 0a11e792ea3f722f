"""Every sentence that a participant reads; study.toml may replace each, in any language."""

from __future__ import annotations

from msgspec import Struct


class Texts(Struct, forbid_unknown_fields=True, frozen=True):
    """Texts of the participant's pages; an empty line begins a new paragraph."""

    consent_title: str = "Before you begin"
    consent: str = (
        "You will be asked which of two things is more like a third. There are no right or wrong "
        "answers: we are interested in how things seem to you.\n\n"
        "Your answers and the time that you take are stored without your name. You may stop at "
        "any time by closing this page."
    )
    agree: str = "I agree and want to take part"
    decline: str = "I do not want to take part"
    instructions_title: str = "What to do"
    instructions: str = (
        "Each time you will see one item and two others. Choose the one of the two that is more "
        "like the first. Click or tap it, or press the left or right arrow key.\n\n"
        "Answer by your first impression; it should take a few seconds."
    )
    begin: str = "Begin"
    practice_note: str = "Practice"
    practice_right: str = "Yes, most people would say so."
    practice_wrong: str = "Most people would have chosen the other one."
    ready_title: str = "Ready?"
    practice_done: str = "That was the practice. Now the real questions begin."
    cant_tell: str = "I can't tell"
    progress: str = "{done} of {all}"
    break_title: str = "Time for a break"
    break_text: str = "Rest your eyes for a moment. Go on when you are ready."
    go_on: str = "Go on"
    feedback_title: str = "One last thing"
    feedback: str = "Is there anything that you would like to tell us? You may leave this empty."
    send: str = "Send and finish"
    finished_title: str = "Thank you!"
    finished: str = "Your answers are stored. You have finished the study."
    code: str = "Your completion code:"
    redirect: str = "Return to the recruitment site"
    declined_title: str = "No problem"
    declined: str = "You have chosen not to take part. No answers were collected."
    paused_title: str = "A short pause"
    paused: str = "The study is paused at the moment. Your answers are kept; please try again soon."
    full_title: str = "This study has closed"
    full: str = "It is not taking any more participants. Thank you for your interest."
    expired_title: str = "This study has closed"
    expired: str = (
        "The study closed while you were away. Any answers that you gave are stored. "
        "Thank you for taking part."
    )
    unknown_title: str = "This link does not lead anywhere"
    unknown: str = "Please check the address that you were given."
    already_title: str = "You have taken part already"
    already: str = "Each person can take part once. Thank you for having done so."
    elsewhere_title: str = "The study continues in another window"
    elsewhere: str = (
        "You have opened this study in another tab or window, and it continues there. What you "
        "choose in this one is no longer stored. To use this window instead, continue here."
    )
    go_on_here: str = "Continue here"
    taken_over: str = "This study was also open in another window. It will continue here."
    preview_title: str = "Preview"
    preview: str = "This is a preview. Accept the task to begin."
    trouble_title: str = "We're having a technical problem"
    trouble: str = (
        "We could not store this because of a technical problem on our side. "
        "Please try again in a moment."
    )
    try_again: str = "Try again"
    error_title: str = "That did not work"
    error: str = "Your browser sent something that we could not use. Nothing was lost."
    back: str = "Back to the study"
    offline: str = "The connection was lost. Your answer is kept and will be sent again."
    loading: str = "One moment, please …"
    timed_out: str = "You ran out of time on that one. Here is the next."
    not_taken: str = (
        "That could not be accepted, and nothing was stored. Please choose one of the two."
    )
    play: str = "Play"
    play_first: str = "Please play everything once; then choose."
    anchor_label: str = "Compare with this"
    left_label: str = "Left"
    right_label: str = "Right"
