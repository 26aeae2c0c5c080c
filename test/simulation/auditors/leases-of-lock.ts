import { recordOf, textOf, wholeNumberOf } from '../../../runtime/json.ts';
import type { KubeObject } from '../../../sim/kube-api/object.ts';
import type { OpenAuditor } from './auditor.ts';

/** The lock of a program: its holder, how long it is held, and since when by true time. */
type Held = { readonly holder: string; readonly leaseMs: number; readonly sinceMs: number };

const ANNOTATION = 'control-plane.alpha.kubernetes.io/leader';

/** Where the locks are. */
const LOCKS: readonly string[] = ['configmaps', 'endpoints'];

/** A7: no call that changes something is sent by a life whose lease, by true time, is over. */
export const openLeasesOfLock: OpenAuditor = (world) => {
  const last = new Map<string, Held>();
  /** The locks as they are, by program. */
  const now = new Map<string, Held>();
  return {
    name: 'A7',
    change: (plural, { object }) => {
      if (!LOCKS.includes(plural)) return;
      const held = heldBy(object, world.time.nowMs);
      if (held === undefined) return;
      now.set(programOf(held.holder), held);
      last.set(held.holder, held);
    },
    sent: ({ life, action }) => {
      if (action.startsWith('Describe')) return;
      const mine = last.get(life);
      const held = now.get(programOf(life));
      const isOver = mine === undefined || world.time.nowMs > mine.sinceMs + mine.leaseMs;
      if (held !== undefined && (isOver || held.holder !== life))
        world.violate('A7', `${life} sends ${action}, and ${isOver ? 'its lease is over' : `${held.holder} leads`}`);
    },
  };
};

/** A life is named by its program, its replica and its number. */
function programOf(life: string): string {
  return life.split('-')[0] ?? '';
}

function heldBy(object: KubeObject, nowMs: number): Held | undefined {
  const text = object.metadata.annotations?.[ANNOTATION];
  if (text === undefined) return undefined;
  const record = recordOf(JSON.parse(text));
  const leaseMs = wholeNumberOf(record['leaseDurationSeconds']) * 1_000;
  // A life has its name before the `_` of its identity.
  const [holder = ''] = textOf(record['holderIdentity']).split('_');
  return { holder, leaseMs, sinceMs: nowMs };
}
