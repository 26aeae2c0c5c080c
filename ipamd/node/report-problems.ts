import { API_VERSION } from '../../crd/names.ts';
import type { NecEntry } from './nec-entry.ts';
import type { NodeDeps } from './node-deps.ts';
import type { NodeMemory } from './node-memory.ts';
import type { Plan } from './plan-reconcile.ts';

/** Reports that an object was repaired: it was not as ipamd and the agent had left it. */
export function reportRepair(
  { events, log, observe }: NodeDeps,
  { object }: NecEntry,
  kind: string,
  detail: string,
): void {
  const { name, uid } = object.metadata;
  const involved = { apiVersion: API_VERSION, kind: 'NodeENIConfig', name, ...(uid === undefined ? {} : { uid }) };
  observe.onRepaired?.({ node: name, kind });
  log.warn('an object that another client changed is repaired', { node: name, kind, detail });
  events.record({ involved, type: 'Warning', reason: 'ObjectMended', message: detail });
}

/** Reports the problems of a node: an event when they change, and the metrics each time. */
export function reportProblems(
  { observe, events, log }: NodeDeps,
  memory: NodeMemory,
  { object }: NecEntry,
  { problems, ending }: Pick<Plan, 'problems' | 'ending'>,
): void {
  const { name, uid } = object.metadata;
  observe.onProblems?.(name, problems);
  const text = problems.map(({ reason, message }) => `${reason}: ${message}`).join('\n');
  // A call in flight shows nothing about the state of the node.
  if (text === (memory.reportedProblems ?? '') || (text === '' && ending.kind !== 'idle')) return;
  memory.reportedProblems = text;
  const involved = { apiVersion: API_VERSION, kind: 'NodeENIConfig', name, ...(uid === undefined ? {} : { uid }) };
  for (const { reason, message } of problems) events.record({ involved, type: 'Warning', reason, message });
  if (problems.length > 0) log.warn('a node has a problem', { node: name, problems });
  else {
    log.info('a node has no more problems', { node: name });
    events.record({
      involved,
      type: 'Normal',
      reason: 'SupplyMet',
      message: 'the node has the addresses that it wants',
    });
  }
}
