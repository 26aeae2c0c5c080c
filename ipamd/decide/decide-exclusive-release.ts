import type { NodeEniInfo } from '../../crd/node-eni-config-fields.ts';
import { isHandedOver, requestOf } from './decide-exclusive-marks.ts';
import { removeEni } from './decide-removal.ts';
import type { Blocked } from './decision.ts';
import type { DecisionContext, Step } from './decision-context.ts';
import { countExclusiveEnis, type ExclusiveEniCounts, exclusiveEnisOf, matchesEni } from './exclusive-eni-counts.ts';
import { type Offers, offersOf } from './offers.ts';

/**
 * Decides which exclusive ENI is detached or deleted: one that is Detaching already; else one that the agent offers and
 * that is not needed, or whose claim ends or has its Pod elsewhere. It becomes Detaching in the write that records the
 * call. A static ENI is not deleted here: its VpcENI takes it over. Takes ids.
 */
export function decideExclusiveRelease(context: DecisionContext): Step {
  const { view, status, busy } = context;
  const offers = offersOf(view);
  const supply = countExclusiveEnis(view, status);
  const free = exclusiveEnisOf(status).filter((eni) => !busy.has(eni.eniID));
  const detaching = free.filter((eni) => eni.state === 'Detaching');
  const ready = free.filter((eni) => eni.state !== 'Detaching' && mayRelease(context, supply, offers, eni));
  let firstBlocked: Step;
  for (const eni of [...detaching, ...ready]) {
    const step = isHandedOver(eni) ? blockedByHandover(eni) : removeEni(context, eni);
    if (step?.kind === 'begin') return step;
    firstBlocked ??= step;
  }
  return firstBlocked;
}

/** The VpcENI controller takes the ENI over and enqueues the node then; this timer is for a lost notification. */
const HANDOVER_RECHECK_MS = 5_000;

function blockedByHandover({ eniID }: NodeEniInfo): Blocked {
  const message = `ENI ${eniID} is on no instance, its VpcENI takes it over`;
  return { kind: 'blocked', reason: 'CallUnderWay', message, afterMs: HANDOVER_RECHECK_MS };
}

function mayRelease(context: DecisionContext, supply: ExclusiveEniCounts, offers: Offers, eni: NodeEniInfo): boolean {
  const { view } = context;
  if (offers.isHeld({ ip: eni.primaryIP ?? '', claim: eni.claim })) return false;
  if (view.leaving === 'force') return true;
  if (eni.claim !== undefined) return mayReleaseStatic(context, offers, eni);
  const isSurplus = supply.have + supply.coming > supply.want;
  if (eni.state === 'Attaching') {
    // One that served before is attached again for its Pod, as when a person detached it in the console.
    const isUnused = eni.assignmentID === undefined || view.inUse?.has(eni.primaryIP ?? '') === false;
    const isGoing = isUnused && eni.deviceIndex === undefined && (isSurplus || eni.draining === true);
    return view.stuck.has(eni.eniID) || isGoing;
  }
  return offers.isEniOffered(eni) && (eni.draining === true || supply.have > supply.want);
}

/** Reports whether a static ENI may be detached. It stays while its Pod is here, and when its claim has no request. */
function mayReleaseStatic({ view }: DecisionContext, offers: Offers, eni: NodeEniInfo): boolean {
  const request = requestOf(view, eni);
  if (request === undefined || matchesEni(request, eni) || eni.claim?.uid !== undefined) return false;
  if (request.goal === 'keep' && view.leaving === 'no') return false;
  const isAbandoned = request.mayTakeOver === true && view.inUse?.has(eni.primaryIP ?? '') !== true;
  return eni.state === 'Attached' && (isAbandoned || offers.isEniOffered(eni));
}
