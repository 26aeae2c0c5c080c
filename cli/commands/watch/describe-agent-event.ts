import { type AgentEvent, EVENT_KIND, EVENT_OUTCOME } from '../../../agent/api/ops-messages.ts';
import { latencyText } from '../../agent/duration-text.ts';
import type { WatchNames } from './names.ts';
import { AGENT_KINDS, type WatchEvent, type WatchKind, type WatchOwner } from './watch-event.ts';

/**
 * Builds the lines of an event of the agent: one with the number of events dropped before it, if any, and the event
 * itself.
 */
export function describeAgentEvent(event: AgentEvent, names: Pick<WatchNames, 'podOfSandbox'>): readonly WatchEvent[] {
  const base = { atMs: event.atUnixMs, source: 'agent', isOurs: true, isNoise: false } as const;
  const owner = ownerOf(event, names);
  const described: WatchEvent = {
    ...base,
    kind: eventKindText(event.kind),
    change: event.outcome === EVENT_OUTCOME.EVENT_OUTCOME_FAILED ? 'failed' : 'ok',
    text: textOf(event, owner),
    ...(owner === undefined ? {} : { owner }),
    ...(event.operations.length === 0 ? {} : { operations: event.operations }),
  };
  if (event.dropped === 0) return [described];
  const text = `${event.dropped} events of the agent were dropped here: this reader was too slow`;
  return [{ ...base, kind: 'lost', change: '~', text }, described];
}

/** Returns the name of an event kind in lower case: 'add'. An unknown kind, of a newer agent, becomes 'status'. */
export function eventKindText(kind: number): WatchKind {
  const name = Object.entries(EVENT_KIND).find(([, number]) => number === kind)?.[0] ?? '';
  const kindName = name.slice('EVENT_KIND_'.length).toLowerCase();
  return AGENT_KINDS.find((known) => known === kindName) ?? 'status';
}

/** Returns the agent's number of an event kind; undefined for kinds that the agent does not report. */
export function eventKindNumber(kind: string): number | undefined {
  const found = Object.entries(EVENT_KIND).find(([name]) => name === `EVENT_KIND_${kind.toUpperCase()}`);
  return found?.[1];
}

function ownerOf(
  { subject, containerId }: AgentEvent,
  names: Pick<WatchNames, 'podOfSandbox'>,
): WatchOwner | undefined {
  if (containerId !== '') {
    const known = names.podOfSandbox(containerId, 'eth0');
    return known.kind === 'pod' && subject.includes('/') ? { ...known, name: subject } : known;
  }
  if (subject.includes('/')) return { kind: 'pod', name: subject, containerId: '', ips: [], eniId: '' };
  return subject.startsWith('eni-') ? { kind: 'eni', eniId: subject, ifname: '', table: 0 } : undefined;
}

function textOf({ subject, text, code, durationUs }: AgentEvent, owner: WatchOwner | undefined): string {
  const about = owner === undefined && subject !== '' ? `${subject}: ` : '';
  const failure = code === 0 ? '' : ` (code ${code})`;
  const took = durationUs === 0 ? '' : ` in ${latencyText(durationUs)}`;
  return `${about}${text}${failure}${took}`;
}
