import { isNetlinkError } from '../netlink/netlink-error.ts';
import type { Request } from '../netlink/request.ts';
import type { Rtnetlink } from '../netlink/rtnetlink.ts';
import { type RouteState, type RuleState, ruleKey } from './desired.ts';
import { decideTakenName } from './host-veth-name.ts';
import { canonicalAddress, hostPrefix } from './ip-prefix.ts';
import type { Kernel } from './kernel.ts';
import { findHostVeths } from './make-veth.ts';
import type { NodeNetwork, PodNetwork } from './network.ts';
import { TABLE_MAIN, TABLE_POD_ROUTES } from './numbers.ts';
import { planPod } from './plan-pod.ts';
import { routeSpec, ruleSpec } from './to-request.ts';

/** What unwiring did. The address may be used again only when `finished` has settled. */
export type UnwiredPod = {
  /** Whether a host link of this attachment was found. */
  readonly hadLink: boolean;
  /** Settles when the links are gone. @throws NetlinkError */
  readonly finished: Promise<void>;
};

/**
 * Unwires one Pod by what its lease says, never by names: the ifindex counts, and only while the link there bears our alias or MAC, since
 * the kernel may have given the number to another link. Routes and rules are gone when this returns; the links go in the background,
 * as a veth takes the kernel 25 ms. Whatever is gone already is success; the Pod's namespace is not needed.
 * @throws NetlinkError for anything but absence
 */
export function unwirePod(kernel: Pick<Kernel, 'rtnetlink'>, node: NodeNetwork, pod: PodNetwork): UnwiredPod {
  const { rtnetlink } = kernel;
  const ifindexes = pod.kind === 'ipam' ? [] : linksOf(rtnetlink, pod);
  const requests = [
    ...rulesOf(node, pod).map((rule): Request => ({ object: 'rule', verb: 'delete', spec: ruleSpec(rule) })),
    ...routesOf(pod, ifindexes).map((route): Request => ({ object: 'route', verb: 'delete', spec: routeSpec(route) })),
  ];
  for (const outcome of rtnetlink.execute(requests)) {
    if (outcome.kind === 'error' && !isAbsence(outcome.error)) throw outcome.error;
  }
  return { hadLink: ifindexes.length > 0, finished: deleteLinks(rtnetlink, ifindexes) };
}

function linksOf(rtnetlink: Rtnetlink, pod: PodNetwork): readonly number[] {
  const { ifindex } = pod.hostVeth;
  // A lease without an index is one whose wiring was cut short; then all links are searched for this attachment's marks.
  if (ifindex === undefined) return findHostVeths(rtnetlink, pod).map((link) => link.ifindex);
  const found = rtnetlink.link.get({ ifindex });
  if (found === undefined) return [];
  const { ifalias, address, kind } = found;
  const marks = {
    ...(kind !== undefined && { kind }),
    ...(ifalias !== undefined && { ifalias }),
    ...(address !== undefined && { mac: address }),
  };
  return decideTakenName(marks, { alias: pod.alias, mac: pod.hostVeth.mac }) === 'replace' ? [ifindex] : [];
}

// The rules of both modes: a change of the mode may be under way.
function rulesOf(node: NodeNetwork, pod: PodNetwork): readonly RuleState[] {
  const rules = planPod({ ...node, ruleMode: 'per-pod' }, pod).host.rules;
  return [...new Map(rules.map((rule) => [ruleKey(rule), rule])).values()];
}

// By address and link: the address may by now be routed to a new sandbox's link. The routes of both modes, likewise.
function routesOf(pod: PodNetwork, ifindexes: readonly number[]): readonly RouteState[] {
  return ifindexes.flatMap((oif) =>
    pod.ips.flatMap((ip) =>
      [TABLE_POD_ROUTES, TABLE_MAIN].map((table): RouteState => {
        const dst = hostPrefix(canonicalAddress(ip));
        return {
          table,
          dst,
          oif,
          oifname: pod.hostVeth.name,
          ...(dst.includes(':') ? {} : { scope: 'link' as const }),
        };
      }),
    ),
  );
}

async function deleteLinks(rtnetlink: Rtnetlink, ifindexes: readonly number[]): Promise<void> {
  await Promise.all(
    ifindexes.map(async (ifindex) => {
      try {
        await rtnetlink.link.deleteInBackground(ifindex);
      } catch (error) {
        // It went with the Pod's namespace.
        if (!isAbsence(error)) throw error;
      }
    }),
  );
}

function isAbsence(error: unknown): boolean {
  return isNetlinkError(error, 'ENOENT', 'ESRCH', 'ENODEV', 'EAFNOSUPPORT');
}
