import { readOwnerMark } from '../balancers/owner-mark.ts';
import { readAnnotations } from './read-annotations.ts';
import type { IngressHead } from './read-ingress.ts';
import { type IngressSettings, SERVED_ANNOTATIONS } from './served-annotations.ts';

/**
 * What an Ingress is of a group: Ingresses with `enable-group` that share the listeners of one load balancer.
 * - `serving`: its rules are on the listeners, or are to be.
 * - `asIs`: its rules stay, and nothing of it is written: its class is missing.
 * - `leaving`: its rules go, and then its finalizer.
 * - `left`: its rules stay, and its finalizer goes: its mode is skip.
 * - `none`: it is none of the group, or not yet.
 */
export type Membership = 'serving' | 'asIs' | 'leaving' | 'left' | 'none';

const GROUP = 'group:';

/**
 * Returns the keys of the units that an Ingress belongs to: `namespace/name` for itself, `group:lb-…` for a group. It is
 * of two while it moves from one to the other. One that has a load balancer of its own does not join a group.
 */
export function unitKeysOf(head: IngressHead): readonly string[] {
  const joined = joinedOf(head);
  const keys = new Set(joined === undefined ? [] : [groupKeyOf(joined)]);
  const wanted = wantedOf(head);
  const isAlone = joined === undefined && readOwnerMark(head).loadBalancerId !== undefined;
  keys.add(wanted === undefined || isAlone ? head.key : groupKeyOf(wanted));
  return [...keys];
}

/** Returns the load balancer of the group that a unit is; undefined: it is a single Ingress. */
export function groupOf(unitKey: string): string | undefined {
  return unitKey.startsWith(GROUP) ? unitKey.slice(GROUP.length) : undefined;
}

/** Reports whether an Ingress has rules in a group, or had: it is released by the group. */
export function isJoined(head: IngressHead): boolean {
  return joinedOf(head) !== undefined;
}

/** Decides what an Ingress is of the group of a load balancer. @param role that of `decideIngress` */
export function decideMembership(
  head: IngressHead,
  role: 'serve' | 'release' | 'ignore',
  loadBalancerId: string,
): Membership {
  const joined = joinedOf(head);
  if (joined === loadBalancerId) {
    if (role === 'ignore') return 'asIs';
    const { settings } = readAnnotations(head.annotations);
    if (role === 'release') return settings.mode === 'skip' ? 'left' : 'leaving';
    return wantsToLeave(head) && settings.allowAddressChange === true ? 'leaving' : 'serving';
  }
  const isWanted = wantedOf(head) === loadBalancerId;
  if (!isWanted || readOwnerMark(head).loadBalancerId !== undefined || role === 'ignore') return 'none';
  return role === 'serve' ? 'serving' : 'leaving';
}

/** Reports whether an Ingress of a group asks for another load balancer, or for listeners of its own. */
export function wantsToLeave(head: IngressHead): boolean {
  const { settings } = readAnnotations(head.annotations);
  // With mode skip nothing changes, so it does not leave either. What cannot be read asks for nothing.
  const isUnread = (['enableGroup', 'existedLbId'] as const).some((key) => isMalformed(head, settings, key));
  return settings.mode !== 'skip' && !isUnread && wantedOf(head) !== joinedOf(head);
}

function isMalformed(
  { annotations }: IngressHead,
  settings: IngressSettings,
  key: 'enableGroup' | 'existedLbId',
): boolean {
  return Object.hasOwn(annotations, SERVED_ANNOTATIONS[key].name) && settings[key] === undefined;
}

function groupKeyOf(loadBalancerId: string): string {
  return `${GROUP}${loadBalancerId}`;
}

function joinedOf(head: IngressHead): string | undefined {
  const { grouped, loadBalancerId } = readOwnerMark(head);
  return grouped === true ? loadBalancerId : undefined;
}

function wantedOf({ annotations }: IngressHead): string | undefined {
  const { enableGroup, existedLbId } = readAnnotations(annotations).settings;
  return enableGroup === true ? existedLbId : undefined;
}
