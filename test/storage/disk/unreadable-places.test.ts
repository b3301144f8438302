import t from "tap";
import { FileSystemError } from "../../../storage/disk/file-system-error.js";
import { UnreadablePlaces } from "../../../storage/disk/unreadable-places.js";

const BLOCK = 4096;
const error = new FileSystemError("EIO", "read", "a");

t.test("blocks that follow one another are one place, and each is noted once", async (t) => {
  const places = new UnreadablePlaces();
  for (const offset of [0, BLOCK, BLOCK, 2 * BLOCK, 0, 8 * BLOCK]) places.note("a", offset, BLOCK, error);
  places.note("b", 9 * BLOCK, BLOCK, error);
  places.note("c", 0, 0, error);
  places.note("c", 0, 0, error);
  t.same(
    places.all.map(({ path, offset, lengthBytes }) => [path, offset, lengthBytes]),
    [
      ["a", 0, 3 * BLOCK],
      ["a", 8 * BLOCK, BLOCK],
      ["b", 9 * BLOCK, BLOCK],
      ["c", 0, 0],
    ],
  );
});

t.test(
  "of more places than are kept the last ones stay, and of no file it is forgotten that it lacks something",
  async (t) => {
    const places = new UnreadablePlaces();
    places.note("first", 0, BLOCK, error);
    for (let nth = 0; nth < 1_000; nth++) places.note("many", 2 * nth * BLOCK, BLOCK, error);
    places.note("last", 0, BLOCK, error);
    t.equal(places.all.length, 1_000);
    t.match(places.all.at(-1), { path: "last" });
    t.notOk(places.all.some(({ path }) => path === "first"));
    t.ok(["first", "many", "last"].every((path) => places.has(path)));
  },
);
