import { readSubnetSupply, type SubnetSupply } from '../../crd/subnet-supply.ts';
import { isRecord } from '../../runtime/decode.ts';

/** Reads the ConfigMap that tells what subnets have left; of a subnet whose text is malformed nothing is known. Pure. */
export function readSubnets(object: Readonly<Record<string, unknown>>): ReadonlyMap<string, SubnetSupply> {
  const data = isRecord(object['data']) ? object['data'] : {};
  const read = Object.entries(data).flatMap(([id, text]) => {
    const supply = readSubnetSupply(text);
    return supply === undefined ? [] : [[id, supply] as const];
  });
  return new Map(read);
}
