import { mkdir, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import t from "tap";
import { generateUuidV7 } from "../../../core/identifiers.js";
import { capturePath } from "../../../storage/captures/capture-path.js";
import { openDataDirectory } from "../../../storage/disk/data-directory.js";
import { FileSystemError } from "../../../storage/disk/file-system-error.js";
import { segmentName } from "../../../storage/log/segment.js";
import { CAPTURES, failing, type Lookup, storeWithCaptures } from "../../helpers/disk/unreadable-store.js";
import { listOf } from "../../helpers/list-of.js";
import { checkDirectory } from "../../helpers/store/checked-directory.js";
import { META, QUARANTINE } from "../../helpers/store/log-harness.js";

const PATH_OF_LOOP = capturePath(generateUuidV7(1_800_000_000_000, new Uint8Array(10)), "capture");

t.test("check goes on where the disk does not give bytes, and tells them and what they are a part of", async (t) => {
  const { disk, paths, check } = await storeWithCaptures();
  t.match(await check(), { ok: true, findings: { length: 0 } });
  const files = [
    ...disk.paths().filter((path) => path.startsWith(META)),
    ...paths.map((path) => `${CAPTURES}/${path}`),
  ];
  const places: [string, number][] = files.flatMap((path) => {
    const blocks = Math.ceil(disk.bytesOf(path).length / 4096);
    return Array.from({ length: blocks }, (_, block): [string, number] => [path, block * 4096]);
  });
  let wrong = 0;
  for (const [path, offset] of places) {
    // A read that touches the block fails as a whole.
    disk.onRead = (read, position, lengthBytes) =>
      read === path && position < offset + 4096 && position + lengthBytes > offset ? "EIO" : undefined;
    const { ok, findings, summary } = await check();
    const name = path.slice("/data/".length);
    const isTold = findings.some((one) => one.code === "unreadable" && one.file === name && one.offset === offset);
    const isNamed = findings.some((one) => one.code !== "unreadable" && one.file === name);
    const others = findings.filter((one) => one.file !== name && one.code !== "capture_unjudged");
    if (ok || !isTold || !isNamed || others.length > 0 || summary.captureFiles !== 3) wrong++;
  }
  t.equal(wrong, 0);
  t.comment(`EIO at each of ${places.length} blocks: ${wrong} not told by check`);
  disk.onRead = (path) => (path.includes("meta/") ? "EIO" : undefined);
  const { ok, findings } = await check();
  t.notOk(ok);
  t.ok(findings.some(({ code }) => code === "segment_unreadable"));
  disk.onRead = () => undefined;
  const open = disk.open.bind(disk);
  disk.open = (path, mode) =>
    path.endsWith(paths[0] as string) ? Promise.reject(new FileSystemError("EACCES", "open", path)) : open(path, mode);
  t.match(await check(), {
    ok: false,
    summary: { damages: 3 },
    findings: listOf(...Array(3).fill({ code: "unreadable", file: `captures/${paths[0]}`, message: /EACCES/ })),
  });
});

t.test("check goes on where a folder cannot be listed or a file's size be asked for, and names it", async (t) => {
  const { disk, paths, check } = await storeWithCaptures();
  const [first, , third] = paths as [string, string, string];
  // Check must find this damage in each case, since it reads it after the failing place.
  const bytes = disk.bytesOf(`${CAPTURES}/${third}`);
  bytes[14_000]! ^= 1;
  disk.setBytes(`${CAPTURES}/${third}`, bytes);
  disk.setBytes(`${QUARANTINE}/${segmentName(1)}-64-80.bin`, new Uint8Array(80));
  const month = first.slice(0, 6);
  const places: [operation: Lookup, file: string, code: string][] = [
    ["readDirectory", "captures", "EIO"],
    ["readDirectory", `captures/${month}`, "EIO"],
    ["readDirectory", "quarantine", "EIO"],
    ["sizeOf", `captures/${first}`, "ELOOP"],
    ["sizeOf", `meta/${segmentName(1)}`, "EIO"],
    ["sizeOf", `quarantine/${segmentName(1)}-64-80.bin`, "EIO"],
  ];
  const whole = await check();
  t.match([whole.ok, whole.summary.damages], listOf(false, 2));
  for (const [operation, file, code] of places) {
    const { ok, findings, summary } = await check(failing(disk, operation, `/data/${file}`, code));
    const told = findings.filter((one) => one.code === "unreadable");
    t.match(told, listOf({ file, offset: 0, lengthBytes: 0, message: new RegExp(code) }), `${operation} ${file}`);
    t.equal(told.length, 1);
    t.ok(findings.some((one) => one.code === "capture_damaged" && one.file === `captures/${third}`));
    t.match([ok, summary.records, summary.extents], listOf(false, whole.summary.records, 9));
    t.notOk(findings.some((one) => one.code === "capture_unnamed" || one.code === "capture_missing"));
  }
  const unlisted = await check(failing(disk, "readDirectory", META, "EIO"));
  const codes = unlisted.findings.map((one) => `${one.code} ${one.file}`);
  const unjudged = paths.map((path) => `capture_unjudged captures/${path}`);
  t.same(codes, ["unreadable meta", ...unjudged, `quarantined quarantine/${segmentName(1)}-64-80.bin`]);
});

t.test("check goes on where the disk does not say whether a removed run's captures are there", async (t) => {
  const { disk, paths, check } = await storeWithCaptures();
  const whole = await check();
  const [first] = paths as [string];
  const { findings, summary } = await check(failing(disk, "exists", `${CAPTURES}/${first}`, "EIO"), first);
  t.match(findings, listOf({ code: "unreadable", file: `captures/${first}` }));
  t.match(summary, { records: whole.summary.records, extents: 6, damages: 1 });
});

t.test("check goes on behind each segment that cannot be opened, and calls no capture a stray for it", async (t) => {
  const { disk, paths, check } = await storeWithCaptures();
  const whole = await check();
  const segments = disk.paths().filter((path) => path.startsWith(META));
  t.ok(segments.length > 2);
  let unjudged = 0;
  for (const path of segments) {
    const alone = disk.copy();
    for (const other of segments) if (other !== path) alone.removeFile(other);
    const { summary: own } = await check(alone);
    const { ok, findings, summary } = await check(failing(disk, "open", path, "EIO"));
    const file = path.slice("/data/".length);
    const ofLog = findings.filter((one) => one.file.startsWith("meta/"));
    t.same(ofLog.map((one) => `${one.code} ${one.file}`).sort(), [`segment_unreadable ${file}`, `unreadable ${file}`]);
    t.same([ok, summary.records, summary.damages], [false, whole.summary.records - own.records, 2], file);
    t.equal(summary.extents, whole.summary.extents - own.extents, "what the others name is verified");
    const ofCaptures = findings.filter((one) => one.file.startsWith("captures/"));
    t.ok(
      ofCaptures.every((one) => one.code === "capture_unjudged" && /an unreadable one may name it/.test(one.message)),
    );
    unjudged += ofCaptures.length;
  }
  t.ok(unjudged > 0 && unjudged < paths.length, `${unjudged} captures that one segment alone names`);
});

t.test("check goes on at a capture file and at a segment that are links to themselves", async (t) => {
  const path = t.testdir();
  await (await openDataDirectory({ path, creates: true })).release();
  const loops = [`captures/${PATH_OF_LOOP}`, `meta/${segmentName(1)}`];
  await mkdir(join(path, "captures", PATH_OF_LOOP.slice(0, 6)));
  for (const loop of loops) await symlink(join(path, loop), join(path, loop));
  await writeFile(join(path, "quarantine", "left.bin"), "left");
  const { ok, findings, summary } = await checkDirectory(path);
  const codes = findings.map(({ code, file }) => `${code} ${file}`).sort();
  t.same(codes, [
    `capture_unjudged ${loops[0]}`,
    "quarantined quarantine/left.bin",
    `segment_unreadable ${loops[1]}`,
    ...loops.map((loop) => `unreadable ${loop}`),
  ]);
  t.match([ok, summary.segments, summary.captureFiles, summary.damages], listOf(false, 1, 1, 4));
  const opening = await openDataDirectory({ path, creates: true }).catch((error: unknown) => error);
  const message = new RegExp(`^${join(path, loops[1] as string)} leads through a loop of symbolic links`);
  t.match(opening, { code: "directory_unusable", message }, "a start is refused all the same");
});

t.test("files that no record names are told, and so is what quarantine keeps", async (t) => {
  const { disk, paths, check } = await storeWithCaptures();
  const orphan = capturePath(generateUuidV7(1_800_000_000_999, new Uint8Array(10)), "capture");
  disk.setBytes(`${CAPTURES}/${orphan}`, new Uint8Array(77));
  disk.setBytes(`${CAPTURES}/${paths[0]?.replace(/cap$/, "rep")}`, new Uint8Array(3));
  disk.setBytes(`${CAPTURES}/notes.txt`, new Uint8Array(5));
  disk.setBytes(`${QUARANTINE}/${segmentName(1)}-64-80.bin`, new Uint8Array(80));
  const { ok, findings, summary } = await check();
  t.match([ok, summary.damages], listOf(false, 1), "what quarantine keeps was lost, and nobody has looked at it yet");
  t.match(
    findings.map(({ code, file, lengthBytes }) => `${code} ${file} ${lengthBytes}`).sort(),
    [
      `capture_unnamed captures/${orphan} 77`,
      `capture_unnamed captures/${paths[0]?.replace(/cap$/, "rep")} 3`,
      "file_unknown captures/notes.txt 5",
      `quarantined quarantine/${segmentName(1)}-64-80.bin 80`,
    ].sort(),
  );
  t.match(summary, { captureFiles: 6, captureBytes: 45_085, extents: 9, quarantineFiles: 1, quarantineBytes: 80 });
});
