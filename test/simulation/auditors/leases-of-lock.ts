import { recordOf, textOf, wholeNumberOf } from '../../../runtime/json.ts';
import type { KubeObject } from '../../../sim/kube-api/object.ts';
import type { OpenAuditor } from './auditor.ts';

/** The lock of ipamd: its holder, how long it is held, and since when by true time. */
type Held = { readonly holder: string; readonly leaseMs: number; readonly sinceMs: number };

const ANNOTATION = 'control-plane.alpha.kubernetes.io/leader';

/** A7: no call that changes something is sent by a life whose lease, by true time, is over. */
export const openLeasesOfLock: OpenAuditor = (world) => {
  const last = new Map<string, Held>();
  let now: Held | undefined;
  return {
    name: 'A7',
    change: (plural, { object }) => {
      if (plural !== 'configmaps') return;
      const held = heldBy(object, world.time.nowMs);
      if (held === undefined) return;
      now = held;
      last.set(held.holder, held);
    },
    sent: ({ life, action }) => {
      if (action.startsWith('Describe')) return;
      const mine = last.get(life);
      const isOver = mine === undefined || world.time.nowMs > mine.sinceMs + mine.leaseMs;
      if (now !== undefined && (isOver || now.holder !== life))
        world.violate('A7', `${life} sends ${action}, and ${isOver ? 'its lease is over' : `${now.holder} leads`}`);
    },
  };
};

function heldBy(object: KubeObject, nowMs: number): Held | undefined {
  const text = object.metadata.annotations?.[ANNOTATION];
  if (text === undefined) return undefined;
  const record = recordOf(JSON.parse(text));
  const leaseMs = wholeNumberOf(record['leaseDurationSeconds']) * 1_000;
  // A life has its name before the `_` of its identity.
  const [holder = ''] = textOf(record['holderIdentity']).split('_');
  return { holder, leaseMs, sinceMs: nowMs };
}
