import { ApiError } from './api-error.ts';

/** The IPv4 addresses of a subnet. Network, gateway (.1) and broadcast are nobody's; next-fit, so that one given back rests. */
export class AddressPool {
  readonly cidr: string;
  #first: number;
  #size: number;
  #next = 2;
  #taken = new Set<number>();

  constructor(cidr: string) {
    this.cidr = cidr;
    const [address = '', length = '32'] = cidr.split('/');
    this.#size = 2 ** (32 - Number(length));
    this.#first = numberOf(address) - (numberOf(address) % this.#size);
  }

  /** Addresses that a subnet of this size can hold. */
  get total(): number {
    return this.#size - 3;
  }

  get free(): number {
    return this.total - this.#taken.size;
  }

  get gateway(): string {
    return textOf(this.#first + 1);
  }

  /** Whether the address lies in the subnet, usable or not. */
  covers(ip: string): boolean {
    const offset = numberOf(ip) - this.#first;
    return offset >= 0 && offset < this.#size;
  }

  /** Takes the next free address. @throws ApiError ResourceInsufficient.Subnet */
  take(): string {
    if (this.free <= 0) throw new ApiError('ResourceInsufficient.Subnet', 'The subnet does not have sufficient IPs.');
    while (this.#taken.has(this.#next)) this.#advance();
    const offset = this.#next;
    this.#advance();
    this.#taken.add(offset);
    return textOf(this.#first + offset);
  }

  /** Takes this very address. @throws ApiError when it is reserved, taken or of another subnet */
  takeExact(ip: string): string {
    const offset = numberOf(ip) - this.#first;
    if (!this.covers(ip)) throw new ApiError('InvalidParameterValue.Range', `${ip} is not within ${this.cidr}.`);
    if (offset < 2 || offset > this.#size - 2) {
      throw new ApiError('InvalidParameterValue.Reserved', `${ip} is reserved by the system.`);
    }
    if (this.#taken.has(offset)) throw new ApiError('ResourceInUse', `The address ${ip} is in use.`);
    this.#taken.add(offset);
    return ip;
  }

  give(ip: string): void {
    this.#taken.delete(numberOf(ip) - this.#first);
  }

  #advance(): void {
    this.#next = this.#next + 1 > this.#size - 2 ? 2 : this.#next + 1;
  }
}

function numberOf(ip: string): number {
  const parts = ip.split('.').map(Number);
  if (parts.length !== 4 || parts.some((part) => !Number.isInteger(part) || part < 0 || part > 255)) {
    throw new ApiError('InvalidParameterValue.Malformed', `${ip} is no IPv4 address.`);
  }
  return parts.reduce((sum, part) => sum * 256 + part, 0);
}

function textOf(value: number): string {
  return [24, 16, 8, 0].map((shift) => Math.floor(value / 2 ** shift) % 256).join('.');
}
