import { BlockList, isIPv6, SocketAddress } from 'node:net';
import { ApiError } from './api-error.ts';

/** The IPv6 addresses of a subnet, a /64 or longer prefix such as `fd00:8::/64`. The first two are the gateway's. */
export class Ipv6Pool {
  readonly cidr: string;
  #prefix: string;
  #covered = new BlockList();
  #next = 16;
  #taken = new Set<string>();

  constructor(cidr: string) {
    this.cidr = cidr;
    const [prefix = '', length = '64'] = cidr.split('/');
    this.#prefix = prefix;
    this.#covered.addSubnet(prefix, Number(length), 'ipv6');
  }

  /** Takes an address that was never taken before. */
  take(): string {
    this.#next += 1;
    return this.takeExact(`${this.#prefix}${this.#next.toString(16)}`);
  }

  /** Takes this very address, however it is spelt. @throws ApiError when it is taken or of another subnet */
  takeExact(ip: string): string {
    if (!isIPv6(ip)) throw new ApiError('InvalidParameterValue.Malformed', `${ip} is no IPv6 address.`);
    const { address } = new SocketAddress({ address: ip, family: 'ipv6' });
    if (!this.#covered.check(address, 'ipv6')) {
      throw new ApiError('InvalidParameterValue.Range', `${ip} is not within ${this.cidr}.`);
    }
    if (this.#taken.has(address)) throw new ApiError('ResourceInUse.Address', `The address ${ip} is in use.`);
    this.#taken.add(address);
    return address;
  }

  give(ip: string): void {
    this.#taken.delete(ip);
  }
}
