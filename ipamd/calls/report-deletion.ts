import type { NodeEniConfigStatus } from '../../crd/node-eni-config-fields.ts';
import { involvedObject } from '../../kube/involved-object.ts';
import { NODE_ENI_CONFIGS } from '../../kube/resource-types.ts';
import type { NecEntry } from '../cache/decode-nec.ts';
import type { NodeDeps } from './node-deps.ts';
import type { NodeMemory } from './node-memory.ts';

/** What an object in deletion waits for is reported again at most this often. */
const MIN_INTERVAL_MS = 60_000;

/**
 * Reports that the deletion of an object was requested, and what becomes of it: once, and again when what it waits for is
 * another, once a minute at most. The condition `Ready` has the same at any time.
 */
export function reportDeletion(
  { events, log, clock }: NodeDeps,
  memory: NodeMemory,
  { object }: NecEntry,
  { conditions = [] }: NodeEniConfigStatus,
): void {
  const { name, deletionTimestamp } = object.metadata;
  if (deletionTimestamp === undefined) return;
  const ready = conditions.find(({ type }) => type === 'Ready');
  const isDrained = ready?.reason === 'Draining';
  const text = isDrained ? `the object is deleted: ${ready.message ?? ''}` : RENEWED;
  const before = memory.reportedDeletion;
  const nowMs = clock.monotonicMs();
  if (before !== undefined && (before.text === text || nowMs - before.atMs < MIN_INTERVAL_MS)) return;
  memory.reportedDeletion = { text, atMs: nowMs };
  const involved = involvedObject(NODE_ENI_CONFIGS, object.metadata);
  log.info('the deletion of a NodeENIConfig was requested', { node: name, text });
  events.record({ involved, type: 'Normal', reason: 'DeletionRequested', message: text });
}

const RENEWED =
  'the object is deleted while its Node is there: it is made again from the cloud once no call is under way, and Pods go on. To give the ENIs back, annotate the Node with tke.cloud.tencent.com/disable-node-eni=true first';
