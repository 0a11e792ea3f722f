"""Whether answers survive kills, full disks, lost files, power cuts and hours of load."""
