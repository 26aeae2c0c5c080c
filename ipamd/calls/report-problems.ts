import type { NodeEniConfigStatus } from '../../crd/node-eni-config-fields.ts';
import { involvedObject } from '../../kube/involved-object.ts';
import { NODE_ENI_CONFIGS, NODES } from '../../kube/resource-types.ts';
import { namedProblems } from '../../observability/problem-registry.ts';
import type { NecEntry } from '../cache/decode-nec.ts';
import type { NodeProblem } from '../decide/node-view.ts';
import { problemKey, problemText } from '../decide/problem-text.ts';
import type { NodeDeps } from './node-deps.ts';
import type { NodeMemory } from './node-memory.ts';
import type { Plan } from './plan-reconcile.ts';

/**
 * Problems that leave a node without the addresses or ENIs that it requests. They are reported on the Node too: people and
 * autoscalers look there when Pods do not fit.
 */
const SUPPLY_PROBLEMS: ReadonlySet<NodeProblem['reason']> = new Set([
  'SubnetExhausted',
  'NoSubnetInZone',
  'ENILimit',
  'InstanceENILimit',
  'CloudRefused',
]);

const SUPPLY_MET = 'the node has the addresses that it wants';

/** Reports the problems of a node: an event when they change, and the metrics each time. */
export function reportProblems(
  deps: NodeDeps,
  memory: NodeMemory,
  { object }: NecEntry,
  { problems, ending }: Pick<Plan, 'problems' | 'ending'>,
): void {
  const { metrics, events, log } = deps;
  const { name } = object.metadata;
  metrics.problems.reportOfTerm(`supply/${name}`, namedProblems(name, problems));
  // A call in flight shows nothing about the state of the node.
  if (problems.length === 0 && ending.kind !== 'idle') return;
  if (memory.reports.note('object', problems, problemKey) === undefined) return;
  const involved = involvedObject(NODE_ENI_CONFIGS, object.metadata);
  for (const problem of problems)
    events.record({ involved, type: 'Warning', reason: problem.reason, message: problemText(problem) });
  reportOnNode(deps, memory, name, problems);
  if (problems.length > 0) log.warn('a node has a problem', { node: name, problems });
  else {
    log.info('a node has no more problems', { node: name });
    events.record({ involved, type: 'Normal', reason: 'SupplyMet', message: SUPPLY_MET });
  }
}

/** Records what the supply of a Node lacks as events of the Node, each once for each change. */
function reportOnNode(
  { events, nodes }: NodeDeps,
  memory: NodeMemory,
  name: string,
  problems: readonly NodeProblem[],
): void {
  const uid = nodes?.get(name)?.uid;
  const lacks = problems.filter(({ reason }) => SUPPLY_PROBLEMS.has(reason));
  if (uid === undefined || memory.reports.note('node', lacks, problemKey) === undefined) return;
  const involved = involvedObject(NODES, { name, uid });
  for (const lack of lacks)
    events.record({ involved, type: 'Warning', reason: lack.reason, message: problemText(lack) });
  if (lacks.length === 0) events.record({ involved, type: 'Normal', reason: 'SupplyMet', message: SUPPLY_MET });
}

/** Reports that an object was repaired: it was not as ipamd and the agent had left it. */
export function reportRepair(
  { events, log, metrics }: NodeDeps,
  { object }: NecEntry,
  kind: string,
  detail: string,
): void {
  const { name } = object.metadata;
  const involved = involvedObject(NODE_ENI_CONFIGS, object.metadata);
  metrics.nodesRepaired.inc({ kind });
  log.warn('an object that another client changed is repaired', { node: name, kind, detail });
  events.record({ involved, type: 'Warning', reason: 'ObjectMended', message: detail });
}

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
