import type { Run, RunFile } from "../../data/api.js";
import { bytes } from "../../data/units.js";
import { Download } from "../../downloads/download.js";
import { pageHref } from "../../router.js";
import { Section, Text, Time } from "../../ui/values.js";
import { HeadRow, VirtualTable } from "../../ui/virtual-rows.js";

/** The page reads smaller ones into its memory. */
const LARGE_BYTES = 64 * 1024 * 1024;

export function FilesTable({ run }: { run: Run }) {
  const files = run.files ?? [];
  if (files.length === 0) return null;
  const sum = files.reduce((all, file) => all + (file.deleted_at ? 0 : (file.size_in_bytes ?? 0)), 0);
  return (
    <Section title="Files" aside={<span class="count">{`${files.length}, ${bytes(sum)}`}</span>}>
      <VirtualTable
        label="Files"
        class="files-table"
        rows={files}
        columns={4}
        head={<HeadRow columns={["Name", ["Kind", "wide-only"], ["Step", "number wide-only"], ["Size", "number"]]} />}
        draw={(file) => <FileRow key={file.name} file={file} run={run} />}
      />
    </Section>
  );
}

function FileRow({ file, run }: { file: RunFile; run: Run }) {
  const { name, deleted_at: removedAt } = file;
  return (
    <tr>
      <th scope="row" class="file-name">
        {removedAt ? (
          <Text of={name} />
        ) : (
          <Download
            path={`/runs/${run.id}/files/${encodeURIComponent(name)}`}
            name={name}
            isAtHub={Boolean(run.cell)}
            isLarge={(file.size_in_bytes ?? 0) > LARGE_BYTES}
          >
            <Text of={name} />
          </Download>
        )}
        {removedAt && (
          <span class="note">
            {" removed by retention "}
            <Time at={removedAt} />
          </span>
        )}
        {file.description && (
          <span class="note">
            {" "}
            <Text of={file.description} />
          </span>
        )}
      </th>
      <td class="wide-only">
        {file.frame_id ? <a href={pageHref("frames", file.frame_id)}>{file.type}</a> : file.type}
      </td>
      <td class="number wide-only">{file.step_index ?? ""}</td>
      <td class="number">{removedAt ? "–" : bytes(file.size_in_bytes)}</td>
    </tr>
  );
}
