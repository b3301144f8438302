"""Records runs with a check and a small frame: `python3 inspect_part.py SOCKET COUNT`. It uses producer.py beside it."""
import struct, sys, time
from producer import Producer, new_id


def inspect_part(cell, program, serial_number):
    """One run with a captured frame of 3 lines and 4 columns, and a check."""
    run, frame = cell.new_run_id(), str(new_id())
    planes = {"height": {"dtype": "u16", "scale_mm": 0.001, "offset_mm": 0, "invalid": [0]}}
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    for body, payload in [
        ({"type": "run.create", "id": run, "program_id": program, "serial_number": serial_number}, b""),
        ({"type": "run.start", "id": run}, b""),
        ({"type": "step.start", "run_id": run, "index": 1}, b""),
        ({"type": "frame.begin", "id": frame, "run_id": run, "step_index": 1, "session_id": "s", "frame_type": "profile",
          "width": 4, "height": 3, "planes": planes, "x_pitch_mm": 0.5, "y_pitch_mm": 1, "capture_timestamp": now}, b""),
        ({"type": "frame.lines", "id": frame, "first_line": 0, "line_count": 3}, struct.pack("<12H", *range(1000, 1012))),
        ({"type": "frame.end", "id": frame}, b""),
        ({"type": "step.finish", "run_id": run, "index": 1, "status": "completed"}, b""),
        ({"type": "check.add", "run_id": run, "check": {"name": "gap", "status": "passed", "value": 0.42}}, b""),
        ({"type": "run.finish", "id": run}, b""),
    ]:
        cell.send(body, payload)
    cell.wait()
    return run


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: python3 inspect_part.py SOCKET COUNT")
    cell = Producer(sys.argv[1], "python-example")
    program = {"id": "01900000-0000-7000-8000-0000000000aa", "name": "Gap", "status": "active", "steps": [{"type": "capture_frame"}]}
    cell.send({"type": "program.put", "program": program})
    for part in range(int(sys.argv[2])):
        print(inspect_part(cell, program["id"], f"PY-{part}"), flush=True)
