import { formatIp, parseIp } from '../../runtime/ip-text.ts';

/** An address of either family and a port. */
export type Endpoint = { readonly ip: string; readonly port: number };

const AF_INET = 2;
const AF_INET6 = 10;
/** Bytes of struct sockaddr_in6; struct sockaddr_in is shorter. */
export const ENDPOINT_BYTES = 28;
const IPV4_BYTES = 16;

/** Returns the address family of an endpoint's address. */
export function endpointFamily({ ip }: Endpoint): number {
  return ip.includes(':') ? AF_INET6 : AF_INET;
}

/** Returns the address structure of system calls. @see ip(7), ipv6(7) */
export function encodeEndpoint(endpoint: Endpoint): Buffer {
  const address = parseIp(endpoint.ip);
  if (address === undefined) throw new Error(`${endpoint.ip} is not an address`);
  const isIpv4 = address.length === 4;
  const bytes = Buffer.alloc(isIpv4 ? IPV4_BYTES : ENDPOINT_BYTES);
  bytes.writeUInt16LE(endpointFamily(endpoint), 0);
  bytes.writeUInt16BE(endpoint.port, 2);
  bytes.set(address, isIpv4 ? 4 : 8);
  return bytes;
}

/** Reads an address structure that the kernel filled. */
export function decodeEndpoint(bytes: Uint8Array): Endpoint {
  const view = Buffer.from(bytes);
  const ip = view.readUInt16LE(0) === AF_INET6 ? formatIp(bytes, 8, 16) : formatIp(bytes, 4, 4);
  return { ip, port: view.readUInt16BE(2) };
}
