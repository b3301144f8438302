"""Keeps a copy of all runs and their checks in SQLite: `python3 sync_into_sqlite.py URL FILE`. Python 3.9, nothing else.
Each call brings what changed since the last one. README.md beside this file explains it."""
import json, os, sqlite3, sys
from urllib.parse import urlencode
from urllib.request import Request, urlopen

if len(sys.argv) != 3:
    sys.exit("usage: python3 sync_into_sqlite.py URL FILE")
BASE, FILE = sys.argv[1].rstrip("/"), sys.argv[2]
KEY = os.environ.get("SERVICE_KEY")  # an API key, if the service has keys
PAGE_RUNS = int(os.environ.get("PAGE_RUNS", "500"))
ENDED = {"completed", "failed", "cancelled"}

SCHEMA = """
    CREATE TABLE IF NOT EXISTS runs (id TEXT PRIMARY KEY, serial_number TEXT, program_name TEXT, status TEXT,
        quality_status TEXT, created_at TEXT, updated_at TEXT);
    CREATE TABLE IF NOT EXISTS checks (run_id TEXT, name TEXT, status TEXT, value REAL, canonical_units TEXT);
    CREATE INDEX IF NOT EXISTS checks_of_run ON checks (run_id);
    CREATE TABLE IF NOT EXISTS sync (base TEXT PRIMARY KEY, mark TEXT);
"""
# A run can come twice, and an older state after a newer one is none of ours.
UPSERT = """
    INSERT INTO runs VALUES (:id, :serial_number, :program_name, :status, :quality_status, :created_at, :updated_at)
    ON CONFLICT (id) DO UPDATE SET status = excluded.status, quality_status = excluded.quality_status,
        updated_at = excluded.updated_at WHERE excluded.updated_at >= runs.updated_at
"""


def get(path, **query):
    headers = {"Authorization": f"Bearer {KEY}"} if KEY else {}
    url = f"{BASE}{path}?{urlencode({name: value for name, value in query.items() if value is not None})}"
    with urlopen(Request(url, headers=headers), timeout=60) as answer:
        return json.load(answer)


def checks_of(run):
    report = get(f"/runs/{run['id']}/quality-report")["quality_report"] if run["status"] in ENDED else None
    return [(run["id"], check["name"], check["status"], check.get("value"), check.get("canonical_units"))
            for check in (report or {}).get("checks", [])]


def keep(store, run, checks):
    store.execute(UPSERT, {"serial_number": None, **run})
    store.execute("DELETE FROM checks WHERE run_id = ?", (run["id"],))
    store.executemany("INSERT INTO checks VALUES (?, ?, ?, ?, ?)", checks)


def sync(store):
    """@returns how many entries came. The mark moves only when all pages are stored: after a break the next call begins again."""
    known = store.execute("SELECT mark FROM sync WHERE base = ?", (BASE,)).fetchone()
    since = known[0] if known else None
    mark, offset, total = since, 0, 1
    while offset < total:
        page = get("/runs", updated_since=since, limit=PAGE_RUNS, offset=offset)
        if offset == 0:  # what changes while the other pages are read is later than all of the first one
            mark = max([run["updated_at"] for run in page["runs"]] + ([mark] if mark else []), default=None)
        rows = [(run, checks_of(run)) for run in page["runs"]]
        with store:  # one transaction a page
            for run, checks in rows:
                keep(store, run, checks)
        offset += len(page["runs"])
        total = page["total"] if page["runs"] else 0
    with store:
        store.execute("INSERT OR REPLACE INTO sync VALUES (?, ?)", (BASE, mark))
    return offset


if __name__ == "__main__":
    store = sqlite3.connect(FILE)
    store.executescript(SCHEMA)
    count = sync(store)
    print(f"{count} run{'' if count == 1 else 's'}")
