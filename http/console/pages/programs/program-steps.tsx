import type { Program } from "../../data/api.js";
import { factLine, Section, Text } from "../../ui/values.js";
import { VirtualTable } from "../../ui/virtual-rows.js";

type ProgramStep = Program["steps"][number];

export function ProgramSteps({ steps }: { steps: readonly ProgramStep[] }) {
  const head = (
    <tr>
      <th scope="col" class="number">
        #
      </th>
      <th scope="col">Step</th>
      <th scope="col">Kind</th>
      <th scope="col">Settings</th>
    </tr>
  );
  return (
    <Section title="Steps" aside={<span class="count">{steps.length}</span>} class="steps">
      <VirtualTable
        label="Steps of the program"
        class="program-steps"
        rows={steps}
        columns={4}
        head={head}
        draw={(step, at) => <StepRow key={at} step={step} number={at + 1} group={groupName(step, steps[at - 1])} />}
      />
    </Section>
  );
}

/** Named where a group or section begins. */
function groupName(step: ProgramStep, before: ProgramStep | undefined): string | null | undefined {
  if (step.section_id && step.section_id !== before?.section_id) return step.section_name ?? step.section_id;
  return step.group_id && step.group_id !== before?.group_id ? (step.group_name ?? step.group_id) : undefined;
}

function StepRow({ step, number, group }: { step: ProgramStep; number: number; group: string | null | undefined }) {
  return (
    <tr class={step.enabled === false ? "disabled-row" : ""}>
      <td class="number note">{number}</td>
      <th scope="row">
        {group && (
          <span class="note step-group">
            <Text of={group} />
          </span>
        )}
        <Text of={step.name ?? step.type} />
        {step.enabled === false && <span class="tag">disabled</span>}
      </th>
      <td class="note">{step.type}</td>
      <td class="note">
        <Text of={factLine(step.params ?? {})} none="" />
      </td>
    </tr>
  );
}
