import { renderFault } from '../../../runtime/decode.ts';
import { joinLimited, MAX_TEXT, messageText } from '../../../runtime/limit-text.ts';
import type { NodeProblem } from '../../decide/node-view.ts';
import type { IpamdEventReason } from '../../events/event-reasons.ts';
import type { CiliumNodeEntry } from './cilium-node-entry.ts';
import type { CiliumPoolDecision } from './decide-cilium-pool.ts';
import type { CiliumReleaseReport } from './decide-cilium-release.ts';

const RELEASE_TEXTS: Readonly<Record<CiliumReleaseReport['kind'], string>> = {
  refused: 'Cilium keeps what it was asked to give up, because it is in use; it is asked for again later',
  vetoed: 'Cilium gave up what a live Pod of the node has; it stays in the pool, and on its ENI',
  unanswered: 'Cilium did not answer whether it gives this up; it stays in the pool, and on its ENI',
  lost: "in use, and on none of the node's ENIs any more: replace the Pod",
};

function releaseTexts(
  reports: readonly CiliumReleaseReport[],
  kinds: readonly CiliumReleaseReport['kind'][],
): readonly string[] {
  return kinds.flatMap((kind) => {
    const ips = reports.filter((one) => one.kind === kind).map(({ ip }) => ip);
    return ips.length === 0 ? [] : [`${joinLimited(ips)}: ${RELEASE_TEXTS[kind]}`];
  });
}

/** Lists the releases that Cilium refused and those that a live Pod stopped. They get an event, and no metric. */
export function releaseProblems(reports: readonly CiliumReleaseReport[]): readonly NodeProblem[] {
  return problem('CiliumReleaseRefused', releaseTexts(reports, ['refused', 'vetoed']));
}

/** The text changes as time passes: a status that changes makes Cilium's agent look at its entries again. */
function unansweredTexts(reports: readonly CiliumReleaseReport[]): readonly string[] {
  const minutes = Math.max(...reports.map(({ forMs = 0 }) => forMs)) / 60_000;
  return releaseTexts(reports, ['unanswered']).map((text) => `${text}; for ${minutes.toFixed(0)} min so far`);
}

/** Lists the problems of a CiliumNode, the gravest first. */
export function ciliumProblems(
  entry: CiliumNodeEntry,
  { strays, held, free }: CiliumPoolDecision,
  facts: {
    /** Nodes whose pools have the address too. */
    readonly othersWith: (ip: string) => readonly string[];
    /** Why the NodeENIConfig gets no more addresses; undefined when it has what it wants. */
    readonly shortage: string | undefined;
    readonly reports: readonly CiliumReleaseReport[];
  },
): readonly NodeProblem[] {
  const heldTexts = held.map((ip) => `${ip} is in the pool of ${joinLimited(facts.othersWith(ip))} too`);
  const strayTexts = strays.map((ip) => {
    const others = facts.othersWith(ip);
    return others.length === 0 ? ip : `${ip} (also in the pool of ${joinLimited(others)})`;
  });
  const faultTexts = entry.faults.map(renderFault);
  const isExhausted = facts.shortage !== undefined && free === 0;
  return [
    ...problem('CiliumPoolExhausted', isExhausted ? [`no address is free: ${facts.shortage}`] : []),
    ...problem('CiliumPoolContested', [
      ...releaseTexts(facts.reports, ['lost']),
      ...heldTexts,
      ...(strayTexts.length === 0
        ? []
        : [`in the pool, and on none of the node's ENIs until Cilium gives it up: ${joinLimited(strayTexts)}`]),
    ]),
    ...problem('CiliumReleaseUnanswered', unansweredTexts(facts.reports)),
    ...problem('CiliumNodeInvalid', faultTexts),
  ];
}

function problem(reason: IpamdEventReason, texts: readonly string[]): readonly NodeProblem[] {
  return texts.length === 0 ? [] : [{ reason, message: messageText(joinLimited(texts, '; '), MAX_TEXT.event) }];
}
