import type { Run } from "../../data/api.js";
import { factLine, Section, Text, Time } from "../../ui/values.js";
import { VirtualTable } from "../../ui/virtual-rows.js";

type Entry = NonNullable<Run["event_log"]>[number];

export function EventLog({ entries }: { entries: readonly Entry[] }) {
  if (entries.length === 0) return null;
  const head = (
    <tr>
      <th scope="col">Time</th>
      <th scope="col">Event</th>
      <th scope="col">Details</th>
    </tr>
  );
  return (
    <Section title="Event log" aside={<span class="count">{entries.length}</span>}>
      <VirtualTable
        label="Event log"
        rows={entries}
        columns={3}
        head={head}
        draw={(entry, at) => <EntryRow key={at} entry={entry} />}
      />
    </Section>
  );
}

function EntryRow({ entry }: { entry: Entry }) {
  return (
    <tr>
      <td class="nowrap">
        <Time at={entry.timestamp} />
      </td>
      <th scope="row">
        <Text of={entry.event_type} />
      </th>
      <td class="note event-data">
        <Text of={factLine(entry.data)} none="" />
      </td>
    </tr>
  );
}
