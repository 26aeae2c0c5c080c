import { classifyError } from '../../../cloud/classify-error.ts';
import type { CallContext } from '../../../cloud/cloud.ts';
import { isCloudError } from '../../../cloud/cloud-error.ts';
import type { ReservationQuery, ReservedIp } from '../../../cloud/reserved-ips.ts';
import { RecentChanges } from '../../calls/recent-changes.ts';
import type { ClaimsTerm } from './claims-term.ts';
import { isReservedFor, reservationName } from './reservation-identity.ts';
import type { ReservationRecord } from './reservation-record.ts';

/** Lists the VPCs of the cluster's subnets; none while they are not known. */
export function vpcIdsOf({ subnets }: Pick<ClaimsTerm, 'subnets'>): ReadonlySet<string> {
  return new Set(subnets.all().map(({ vpcId }) => vpcId));
}

/**
 * Finds the reservations of claims. Name and tags prove whose a reservation is, and the VPC is that of the cluster: what
 * the claim's own record says is looked for, and never believed.
 */
export class ReservationSearch {
  readonly #term: ClaimsTerm;
  /** Those that were released lately: a description may still have them. */
  readonly #ended: RecentChanges;

  constructor(term: ClaimsTerm) {
    this.#term = term;
    this.#ended = new RecentChanges(term.clock);
  }

  /** Notes a reservation that is being released. */
  noteEnded(reservationId: string): void {
    this.#ended.note(reservationId);
  }

  /** Reports whether a VPC is one of the cluster's; every VPC may be while they are not known. */
  isOurVpc(vpcId: string): boolean {
    const known = vpcIdsOf(this.#term);
    return known.size === 0 || known.has(vpcId);
  }

  /** Lists the reservations that are proved to be a claim's. @throws CloudError */
  async own(key: string, record: ReservationRecord, context: CallContext): Promise<readonly ReservedIp[]> {
    const { clusterId } = this.#term.config;
    const found = await this.#find(record, { name: reservationName(clusterId, key) }, context);
    const nowMs = this.#term.clock.monotonicMs();
    return found.filter((one) => isReservedFor(one, clusterId, key) && !this.#ended.isRecent(one.reservationId, nowMs));
  }

  /**
   * Returns the reservation that the record names by address and id and that is not proved to be the claim's. Undefined
   * when there is none. @throws CloudError
   */
  async foreign(key: string, record: ReservationRecord, context: CallContext): Promise<ReservedIp | undefined> {
    const { clusterId } = this.#term.config;
    if (record.ip === undefined || record.id === undefined) return undefined;
    const found = await this.#find(record, { ip: record.ip }, context);
    return found.find((one) => one.reservationId === record.id && !isReservedFor(one, clusterId, key));
  }

  async #find(
    { vpcID }: ReservationRecord,
    query: ReservationQuery,
    context: CallContext,
  ): Promise<readonly ReservedIp[]> {
    const found: ReservedIp[] = [];
    for (const vpcId of new Set([...vpcIdsOf(this.#term), vpcID])) {
      const sweep = await this.#term.cloud.reservedIps.find(vpcId, query, context).catch((error: unknown) => {
        // The record may name a VPC that does not exist, or one of another account.
        if (this.isOurVpc(vpcId) || !isCloudError(error, 'never', 'gone')) throw error;
        return { reservations: [], isConsistent: true };
      });
      if (!sweep.isConsistent) {
        const text = `the reservations of ${Object.values(query).join(' ')} changed while they were listed`;
        throw classifyError({ code: 'BAD_ANSWER', action: 'DescribeReserveIpAddresses', text });
      }
      found.push(...sweep.reservations);
    }
    return found;
  }
}
