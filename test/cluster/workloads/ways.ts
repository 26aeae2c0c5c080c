import type { TestVpc } from '../../../sim/vpc/vpc.ts';

/** Forgets which packets went through the VPC so far. */
export function forgetWays(vpc: TestVpc): Promise<void> {
  return vpc.resetPacketLog();
}

/** Lists the ways of TCP packets to or from addresses: `node1/eth0 -> eni-1: 10.0.0.3 > 10.0.1.4`, sorted. */
export async function waysOf(vpc: TestVpc, addresses: readonly string[]): Promise<readonly string[]> {
  const passed = (await vpc.packetLog()).filter(
    ({ protocol, src, dst }) => protocol === 'tcp' && (addresses.includes(src) || addresses.includes(dst)),
  );
  return passed.map(({ via, to, src, dst }) => `${via} -> ${to}: ${src} > ${dst}`).sort();
}

/** Lists what the VPC refused: packets that left by an ENI whose address they do not have. */
export async function refusals(vpc: TestVpc): Promise<readonly string[]> {
  const dropped = await vpc.droppedPackets();
  return dropped.map(({ via, reason, src, dst, packets }) => `${via}: ${packets} with ${reason} ${src} > ${dst ?? ''}`);
}
