import type { CallContext, Tags } from './cloud.ts';

/**
 * A reserved address of a VPC: the cloud never chooses it for a resource, while an ENI still gets it when a call names the
 * address. It stays reserved until it is released.
 */
export type ReservedIp = {
  /** `rsvip-pvqgv9vi`. */
  readonly reservationId: string;
  readonly vpcId: string;
  /** '' when the cloud does not report it. */
  readonly subnetId: string;
  readonly ip: string;
  /** The resource that has the address now, an ENI for example; absent: none. */
  readonly boundTo?: string;
  readonly name: string;
  readonly tags: Tags;
};

/** A new reservation. */
export type ReservationSpec = {
  readonly vpcId: string;
  readonly subnetId: string;
  /** The address; absent: any free one of the subnet. */
  readonly ip?: string;
  /** At most 60 characters; deterministic, so that a reservation whose answer was lost is found again. */
  readonly name: string;
  readonly tags?: Tags;
  /** At most 64 ASCII characters: the same token never reserves a second address. */
  readonly clientToken: string;
};

/** Selects reservations of a VPC. */
export type ReservationQuery =
  | { readonly name: string }
  | { readonly ip: string }
  | { readonly tag: { readonly key: string; readonly value: string } };

/** The reservations that a query selects. */
type ReservationSweep = {
  readonly reservations: readonly ReservedIp[];
  /** False when the number changed between pages, each time: one that is not listed may exist all the same. */
  readonly isConsistent: boolean;
};

/**
 * Reserved addresses of a VPC. A change is done when the promise resolves.
 * @see https://cloud.tencent.com/document/product/215/112865 DescribeReserveIpAddresses, and its siblings
 */
export type ReservedIpPort = {
  /**
   * Reserves one address. Idempotent for one token.
   * @throws CloudError `never` with code ResourceInUse when a resource has the address; `quota` with scope `subnet` or
   * `reserved-ips`; `resolve` when it is unknown whether the address is reserved now
   */
  reserve(spec: ReservationSpec, context: CallContext): Promise<ReservedIp>;
  /** Reads all reservations that a query selects. */
  find(vpcId: string, query: ReservationQuery, context: CallContext): Promise<ReservationSweep>;
  /** Ends a reservation that nothing is bound to. @throws CloudError `gone` when it does not exist */
  release(vpcId: string, reservationId: string, context: CallContext): Promise<void>;
};
