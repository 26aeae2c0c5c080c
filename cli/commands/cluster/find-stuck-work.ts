import { finding } from '../../../inspection/catalogue/catalogue.ts';
import type { Finding } from '../../../inspection/catalogue/finding.ts';
import { ifKnown } from '../../../inspection/node/known.ts';
import type { ClusterFacts, Identity, WorkIntent } from './cluster-facts.ts';
import { workIntentOf } from './decode-objects.ts';
import { spanText } from './render-span.ts';

type WithIntents = Identity & { readonly intents: readonly WorkIntent[] };

/** Returns cloud calls and deletions that have been in progress for longer than `graceMs`, and malformed objects. */
export function findStuckWork(facts: ClusterFacts, graceMs: number): readonly Finding[] {
  const necs = facts.necs.map((nec) => ({ ...nec, intents: (nec.status.intents ?? []).map(workIntentOf) }));
  const kinds: readonly (readonly [string, readonly WithIntents[]])[] = [
    ['nec', necs],
    ['vip', ifKnown(facts.vips) ?? []],
    ['veni', ifKnown(facts.venis) ?? []],
    ['eipc', ifKnown(facts.eips) ?? []],
  ];
  const claims = (ifKnown(facts.claims) ?? []).map((claim) => ({ ...claim, intents: [] }));
  const all = [...kinds, ['vipc', claims] as const];
  return [
    ...facts.necs.flatMap(malformed),
    ...all.flatMap(([short, objects]) =>
      objects.flatMap((object) => [
        ...object.intents.flatMap((intent) => stuckIntent(short, object, intent, facts.takenAtMs, graceMs)),
        ...stuckDeletion(short, object, facts.takenAtMs, graceMs),
      ]),
    ),
  ];
}

function malformed({ key, faults }: ClusterFacts['necs'][number]): readonly Finding[] {
  const [first, ...more] = faults;
  if (first === undefined) return [];
  const rest = more.length === 0 ? '' : ` (and ${more.length} more)`;
  const what = `NodeENIConfig ${key}: ${first}${rest}`;
  return [finding('object-malformed', { what, fix: [`kubectl get nec ${key} -o yaml`], subjects: [`nec:${key}`] })];
}

function stuckIntent(
  short: string,
  { key }: Identity,
  { id, action, phase, recordedMs, tries, lastError }: WorkIntent,
  nowMs: number,
  graceMs: number,
): readonly Finding[] {
  const ageMs = nowMs - recordedMs;
  if (ageMs < graceMs) return [];
  const error = lastError === '' ? '' : `; ${lastError}`;
  return [
    finding('intent-stuck', {
      what: `${short} ${key}: ${action} has been ${phase} for ${spanText(ageMs)}, ${tries} tries${error}`,
      fix: [describe(short, key), 'kubectl -n kube-system logs deploy/tke-eni-ipamd'],
      subjects: [`${short}:${key}`, `intent:${id}`],
    }),
  ];
}

function stuckDeletion(
  short: string,
  { key, deletionRequestedMs, finalizers }: Identity,
  nowMs: number,
  graceMs: number,
): readonly Finding[] {
  if (deletionRequestedMs === undefined || finalizers.length === 0 || nowMs - deletionRequestedMs < graceMs) return [];
  return [
    finding('deletion-stuck', {
      what: `${short} ${key} is being deleted for ${spanText(nowMs - deletionRequestedMs)}; it waits for ${finalizers.join(', ')}`,
      fix: [describe(short, key), 'kubectl -n kube-system logs deploy/tke-eni-ipamd'],
      subjects: [`${short}:${key}`],
    }),
  ];
}

function describe(short: string, key: string): string {
  const [namespace = '', name] = key.split('/');
  return name === undefined ? `kubectl describe ${short} ${key}` : `kubectl -n ${namespace} describe ${short} ${name}`;
}
