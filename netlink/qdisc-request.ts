import type { QdiscMessage } from './qdisc-message.ts';
import type { NameOf } from './render-arguments.ts';
import { line } from './render-arguments.ts';
import { TC_H_CLSACT, TC_H_INGRESS_EGRESS } from './uapi/pkt-sched.ts';

/** A clsact discipline: the place of filters at the ingress and the egress of a link. It queues nothing. */
export type QdiscSpec = { readonly ifindex: number; readonly kind: 'clsact' };

/** Translates a discipline into the fields of its message. */
export function qdiscMessageOf({ ifindex, kind }: QdiscSpec): Partial<QdiscMessage> {
  return { ifindex, kind, parent: TC_H_CLSACT, handle: TC_H_INGRESS_EGRESS };
}

/** Renders a request as the equivalent `tc` line. @see tc(8) */
export function renderQdisc(verb: 'add' | 'delete', { ifindex, kind }: QdiscSpec, nameOf: NameOf): string {
  return line('tc qdisc', verb === 'delete' ? 'del' : verb, 'dev', nameOf(ifindex), kind);
}
