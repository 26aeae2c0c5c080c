import { recordOf, textsOf } from '../../../runtime/json.ts';
import type { OpenAuditor } from './auditor.ts';
import { OWNER_TAG, ownBalancers } from './balancer-owners.ts';

/** What was sent for before a Service got its source ranges has been done by then: a change, and a listener whose task takes long; milliseconds. */
const CHANGED_MS = 60_000;
const LISTENS_MS = 600_000;

/** A16: an owner has one load balancer, and a certificate one upload. A18: one that its source ranges have closed is not open for a moment. */
export const openOwnBalancers: OpenAuditor = (world) => {
  const closed = new Set<string>();
  /** Since when Services have source ranges, by uid: always for one that was never without, and never for one that has none. */
  const limitedMs = new Map<string, number>();
  const look = (): void => {
    for (const { metadata, spec } of world.objects('services')) {
      const { uid = '' } = metadata;
      const isLimited = textsOf(recordOf(spec)['loadBalancerSourceRanges']).length > 0;
      const before = limitedMs.get(uid);
      if (!isLimited) limitedMs.set(uid, Number.POSITIVE_INFINITY);
      else if (before === undefined) limitedMs.set(uid, Number.NEGATIVE_INFINITY);
      else if (before === Number.POSITIVE_INFINITY) limitedMs.set(uid, world.time.nowMs);
    }
    const hashes = world.host.model.state.certificates.all().flatMap(({ tags }) => tags[OWNER_TAG] ?? []);
    if (new Set(hashes).size < hashes.length) world.violate('A16', 'two uploads are of one certificate');
    const seen = new Map<string, string>();
    for (const { balancer, owner } of ownBalancers(world)) {
      const { loadBalancerId: id, listeners, securityGroupIds } = balancer;
      const uid = owner?.metadata.uid ?? '';
      const other = seen.get(uid);
      if (uid !== '' && other !== undefined) world.violate('A16', `${id} and ${other} are of one owner`);
      seen.set(uid, id);
      const forMs = world.time.nowMs - (limitedMs.get(uid) ?? Number.POSITIVE_INFINITY);
      const isOpen = listeners.size > 0 && securityGroupIds.length === 0;
      if (forMs < 0) closed.delete(id);
      else if (forMs >= (securityGroupIds.length > 0 ? CHANGED_MS : LISTENS_MS) && !isOpen) closed.add(id);
      else if (isOpen && closed.has(id)) world.violate('A18', `${id} is open to everyone, and was closed`);
    }
  };
  return { name: 'A18', step: look, arrives: look };
};
