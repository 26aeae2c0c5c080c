import type { NodeEniInfo } from '../../crd/node-eni-config-fields.ts';
import { isHandedOver, wishOf } from './decide-direct-marks.ts';
import { removeEni } from './decide-removal.ts';
import { type DirectSupply, directEnisOf, directSupplyOf, isFor } from './direct-supply.ts';
import { type Offers, offersOf } from './offers.ts';
import type { Hold, Scene, Step } from './scene.ts';

/**
 * Decides which exclusive ENI is detached or deleted: one that is Detaching already; else one that the agent offers and
 * that is not needed, or whose claim ends or has its Pod elsewhere. It becomes Detaching in the write that records the
 * call. A static ENI is not deleted here: its VpcENI takes it over. Takes ids.
 */
export function decideDirectRelease(scene: Scene): Step {
  const { view, status, busy } = scene;
  const offers = offersOf(view);
  const supply = directSupplyOf(view, status);
  const free = directEnisOf(status).filter((eni) => !busy.has(eni.eniID));
  const going = free.filter((eni) => eni.state === 'Detaching');
  const ready = free.filter((eni) => eni.state !== 'Detaching' && mayGo(scene, supply, offers, eni));
  let hold: Step;
  for (const eni of [...going, ...ready]) {
    const step = isHandedOver(eni) ? handedOver(eni) : removeEni(scene, eni);
    if (step?.kind === 'begin') return step;
    hold ??= step;
  }
  return hold;
}

/** The VpcENI controller takes the ENI over and enqueues the node then; this timer is for a lost notification. */
const HAND_OVER_MS = 5_000;

function handedOver({ eniID }: NodeEniInfo): Hold {
  const message = `ENI ${eniID} is on no instance, its VpcENI takes it over`;
  return { kind: 'hold', reason: 'CallUnderWay', message, afterMs: HAND_OVER_MS };
}

function mayGo(scene: Scene, supply: DirectSupply, offers: Offers, eni: NodeEniInfo): boolean {
  const { view } = scene;
  if (view.leaving === 'force') return true;
  if (eni.claim !== undefined) return mayKeptGo(scene, offers, eni);
  const isSurplus = supply.have + supply.coming > supply.want;
  if (eni.state === 'Attaching') {
    const isNew = eni.assignmentID === undefined && eni.deviceIndex === undefined;
    return view.stuck.has(eni.eniID) || (isNew && (isSurplus || eni.draining === true));
  }
  return offers.isEniOffered(eni) && (eni.draining === true || supply.have > supply.want);
}

/** Tells whether a static ENI may be detached. It stays while its Pod is here, and when its claim has no request. */
function mayKeptGo({ view }: Scene, offers: Offers, eni: NodeEniInfo): boolean {
  const wish = wishOf(view, eni);
  if (wish === undefined || isFor(wish, eni) || eni.claim?.uid !== undefined) return false;
  if (wish.want === 'keep' && view.leaving === 'no') return false;
  const isAway = wish.mayTakeOver === true && view.inUse?.has(eni.primaryIP ?? '') !== true;
  return eni.state === 'Attached' && (isAway || offers.isEniOffered(eni));
}
