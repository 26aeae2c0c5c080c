import { Address4, Address6 } from 'ip-address';

/** Address family: 4 or 6. */
export type Family = 4 | 6;

/** A subnet of the small VPC. */
export type SubnetSpec = {
  readonly id: string;
  /** IPv4 prefix: '10.0.1.0/24'. */
  readonly cidr: string;
  /** IPv6 prefix: 'fd00:1::/64'. */
  readonly cidrV6?: string;
};

/** The addresses of one subnet: the gateway is the first, the rest are handed out in turn. */
export class Subnet {
  readonly id: string;
  readonly cidr: string;
  readonly cidrV6: string | undefined;
  readonly gateway: string;
  readonly gatewayV6: string | undefined;
  #taken = new Set<string>();
  #next: Record<Family, bigint> = { 4: 2n, 6: 2n };

  constructor(spec: SubnetSpec) {
    this.id = spec.id;
    this.cidr = spec.cidr;
    this.cidrV6 = spec.cidrV6;
    this.gateway = nth(spec.cidr, 1n);
    this.gatewayV6 = spec.cidrV6 === undefined ? undefined : nth(spec.cidrV6, 1n);
  }

  /** Prefix length of the subnet in that family. */
  prefixLength(family: Family): number {
    return Number(this.#cidr(family).split('/')[1]);
  }

  /** Takes the next free address, or the wanted one. @throws Error when it is taken or the subnet is full */
  take(family: Family, wanted?: string): string {
    if (wanted !== undefined) return this.#takeWanted(wanted);
    const cidr = this.#cidr(family);
    const size = 1n << BigInt((family === 4 ? 32 : 128) - this.prefixLength(family));
    // The last IPv4 address is the broadcast address; the first two are the network and the gateway.
    const usable = size - 3n;
    for (let tried = 0n; tried < usable; tried++) {
      // Next-fit: an address given back is not handed out again at once.
      const offset = this.#next[family];
      this.#next[family] = offset + 1n >= size - 1n ? 2n : offset + 1n;
      const ip = nth(cidr, offset);
      if (!this.#taken.has(ip)) {
        this.#taken.add(ip);
        return ip;
      }
    }
    throw new Error(`${this.id}: no free IPv${family} address in ${cidr}`);
  }

  /** Gives an address back; an address that is free already is left alone. */
  release(ip: string): void {
    this.#taken.delete(ip);
  }

  #takeWanted(ip: string): string {
    if (this.#taken.has(ip)) throw new Error(`${this.id}: ${ip} is taken`);
    this.#taken.add(ip);
    return ip;
  }

  #cidr(family: Family): string {
    const cidr = family === 4 ? this.cidr : this.cidrV6;
    if (cidr === undefined) throw new Error(`${this.id}: has no IPv${family} prefix`);
    return cidr;
  }
}

/** Tells the family of an address or prefix by its notation. */
function familyOf(address: string): Family {
  return address.includes(':') ? 6 : 4;
}

/** Prefix of exactly one address: '10.0.0.5/32'. */
export function hostPrefix(ip: string): string {
  return `${ip}/${familyOf(ip) === 4 ? 32 : 128}`;
}

/** Address number `offset` of a prefix, counted from its network address; IPv6 in its short form. */
function nth(cidr: string, offset: bigint): string {
  if (familyOf(cidr) === 4) {
    const start = new Address4(cidr).startAddress().bigInt();
    return Address4.fromBigInt(start + offset).correctForm();
  }
  const start = new Address6(cidr).startAddress().bigInt();
  return Address6.fromBigInt(start + offset).correctForm();
}
