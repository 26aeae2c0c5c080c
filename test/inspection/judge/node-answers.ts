import type { Finding } from '../../../inspection/catalogue/finding.ts';
import type { Explanation } from '../../../inspection/explain/explanation.ts';

/** What one command found. */
export type Answer = {
  readonly command: string;
  readonly findings: readonly Finding[];
  readonly isGood: boolean;
  /** Of an explanation: what it is about. */
  readonly element?: string;
};

/** What the commands that speak of a node's elements say of it at one moment. */
export type NodeAnswers = {
  readonly doctor: Answer;
  readonly graph: Answer;
  /** By the Pod that is explained. */
  readonly explained: ReadonlyMap<string, Answer>;
  /** Absent without a journal: nothing says then what the node should be like. */
  readonly planned?: {
    readonly diff: Answer;
    readonly repair: Answer;
    /** By the Pod that is checked. */
    readonly checked: ReadonlyMap<string, Answer>;
  };
};

/** What an explanation finds, without what hops after a broken one show: that follows from it. */
export function causesOf({ paths, findings }: Explanation): readonly Finding[] {
  const shown = paths.map(({ hops }) => {
    const broken = hops.findIndex(({ verdict }) => verdict === 'broken');
    return {
      causes: hops.slice(0, broken < 0 ? hops.length : broken + 1),
      others: broken < 0 ? [] : hops.slice(broken + 1),
    };
  });
  const causes = shown.flatMap((path) => path.causes.flatMap(({ finding }) => finding ?? []));
  const others = shown.flatMap((path) => path.others.flatMap(({ finding }) => finding?.what ?? []));
  return [...causes, ...findings.filter(({ what }) => !others.includes(what))];
}

/** Says where two commands speak otherwise of one element, a line each; none where they agree. */
export function disagreementsOf({ doctor, graph, explained, planned }: NodeAnswers): readonly string[] {
  const parts = [...(planned === undefined ? [] : [planned.diff, planned.repair]), graph, ...explained.values()];
  return [
    ...parts.flatMap((part) => [...toldOtherwise(doctor, part), ...unknownTo(doctor, part)]),
    ...[doctor, ...parts].flatMap(toldTwice),
    ...(planned === undefined ? [] : verdictsAgainst(explained, planned.checked)),
    ...(planned === undefined
      ? []
      : [...unknownTo(planned.repair, planned.diff), ...unknownTo(planned.diff, planned.repair)]),
  ];
}

/** A command names a fault of an element in other words than the one that speaks of the whole node. Explain may weigh it less. */
function toldOtherwise(whole: Answer, part: Answer): readonly string[] {
  return part.findings.flatMap((finding) => {
    const same = whole.findings.filter(({ id, subjects }) => id === finding.id && subjects[0] === finding.subjects[0]);
    const isSaid = same.some(
      ({ what, why, fix }) => what === finding.what && why === finding.why && `${fix}` === `${finding.fix}`,
    );
    return same.length === 0 || isSaid
      ? []
      : [`${part.command} and ${whole.command} differ:\n  ${textOf(finding)}\n  ${same.map(textOf).join('\n  ')}`];
  });
}

/** One command names a fault of one element twice. */
function toldTwice({ command, findings }: Answer): readonly string[] {
  return findings.flatMap((finding, at) =>
    findings
      .slice(at + 1)
      .filter((other) => other.id === finding.id && other.what === finding.what && other.severity === finding.severity)
      .map(() => `${command} says twice: ${textOf(finding)}`),
  );
}

/** One command reports an error, and another, which speaks of the whole node, does not know it. */
function unknownTo(whole: Answer, part: Answer): readonly string[] {
  const ids = new Set(whole.findings.map(({ id }) => id));
  return part.findings
    .filter(({ severity, id }) => severity === 'error' && !ids.has(id))
    .map((finding) => `${part.command} knows, ${whole.command} does not: ${textOf(finding)}`);
}

/** A Pod is `ok` for `check` while `explain` finds that its packets are lost for a difference of its own. */
function verdictsAgainst(
  explained: ReadonlyMap<string, Answer>,
  checked: ReadonlyMap<string, Answer>,
): readonly string[] {
  return [...explained].flatMap(([pod, { findings, element }]) => {
    const verdict = checked.get(pod);
    // A packet to another Pod meets that Pod's faults too.
    const isOwn = ({ subjects }: Finding) => subjects.every((id) => !id.startsWith('pod:') || id === element);
    const lost = findings.find((finding) => finding.severity === 'error' && finding.isOurs && isOwn(finding));
    return verdict?.isGood === true && lost !== undefined
      ? [`${verdict.command} is content, explain is not: ${textOf(lost)}`]
      : [];
  });
}

function textOf({ id, severity, what, subjects, fix }: Finding): string {
  return `${severity} ${id}: ${what} [${subjects}] (${fix})`;
}
