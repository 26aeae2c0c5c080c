import type { KubeObject } from '../../kube/kube-client.ts';
import { compareTexts } from '../../runtime/compare-texts.ts';
import type { Notice } from '../balancers/notice.ts';
import { decideIngress } from './decide-ingress.ts';
import { decideMembership, type Membership } from './decide-membership.ts';
import { type IngressHead, readIngressHead } from './read-ingress.ts';

/** An Ingress of a group. */
export type Member = {
  readonly object: KubeObject;
  readonly head: IngressHead;
  readonly membership: Membership;
  /** What its class says. */
  readonly ofClass: readonly Notice[];
};

/** Those whose rules stay, the oldest first, and those whose rules go. */
export type Members = { readonly staying: readonly Member[]; readonly leaving: readonly Member[] };

/** Finds the Ingresses of the group of a load balancer. `refused`: those that are none of it, as their class says. */
export function findMembers(
  objects: readonly KubeObject[],
  classes: Parameters<typeof decideIngress>[1],
  loadBalancerId: string,
): Members & { readonly refused: readonly Member[] } {
  const all = objects.map((object): Member => {
    const head = readIngressHead(object);
    const { role, notice } = decideIngress(head, classes);
    const membership = decideMembership(head, role, loadBalancerId);
    return { object, head, membership, ofClass: notice === undefined ? [] : [notice] };
  });
  const staying = all.filter(({ membership }) => membership !== 'leaving' && membership !== 'none');
  return {
    staying: staying.toSorted(compareAges),
    leaving: all.filter(({ membership }) => membership === 'leaving'),
    refused: all.filter(({ membership, ofClass }) => membership === 'none' && ofClass.length > 0),
  };
}

/**
 * Returns the namespace in whose turn a group is worked on: that of its oldest Ingress, as its younger ones cannot choose
 * whom it counts for. `group` where it has none.
 */
export function namespaceOfGroup(objects: readonly KubeObject[]): string {
  const [oldest] = objects.map((object) => ({ head: readIngressHead(object) })).toSorted(compareAges);
  return oldest?.head.namespace ?? 'group';
}

function compareAges({ head: one }: Pick<Member, 'head'>, { head: other }: Pick<Member, 'head'>): number {
  return compareTexts(one.createdAt, other.createdAt) || compareTexts(one.uid, other.uid);
}
