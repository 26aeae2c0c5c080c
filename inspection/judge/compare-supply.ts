import type { Supply, SupplyAddress, SupplyEni } from '../../agent/journal/supply.ts';
import { finding } from '../catalogue/catalogue.ts';
import { type ElementId, eniId, podId } from '../catalogue/element-id.ts';
import type { Finding } from '../catalogue/finding.ts';
import type { ObjectNames } from '../model/build-names.ts';
import type { ModelPod, NodeModel } from '../model/node-model.ts';
import type { Difference } from './difference.ts';

/**
 * Returns addresses of Pods that the VPC does not lead to their ENI by the last supply that the agent applied. The cloud
 * itself is not asked, so every text names the record as its source.
 */
export function compareSupply({ supply, pods }: NodeModel, names: ObjectNames): readonly Difference[] {
  if (supply === undefined) return [];
  // The VPC leads a block by a route, and the whole ENI of a Pod that has one of its own.
  return pods
    .filter(({ gr, hasOwnEni }) => gr === undefined && !hasOwnEni)
    .flatMap((pod) =>
      pod.ips.flatMap((ip) => {
        const owner = { kind: 'pod', key: pod.pod.key } as const;
        const fault = addressFault(supply, pod, ip);
        return fault === undefined ? [] : [{ ...fault, whose: names.text(owner), owner, changes: [] }];
      }),
    );
}

function addressFault(supply: Supply, { pod, name, eni }: ModelPod, ip: string): Finding | undefined {
  const found = findSupplied(supply, ip);
  const said = (what: string, fix: readonly string[]): Finding =>
    finding('source-not-ours', { what, fix, subjects: [addressElement(ip), podId(pod.key)], isOurs: false });
  if (found === undefined) {
    return said(
      `by the supply that is recorded no ENI of this node has ${ip}: if so, the VPC drops what ${name} sends and leads nothing to it`,
      [
        'tke-eni diff --cloud asks the cloud itself',
        'kubectl describe nec',
        'delete the Pod if the cloud took the address away',
      ],
    );
  }
  const { eni: supplied, address } = found;
  if (eni?.eniId !== undefined && supplied.eniId !== eni.eniId) {
    const where = `${eni.eniId} here, and by the supply that is recorded on ${supplied.eniId}`;
    return said(`${ip} of ${name} is on ${where}`, ['tke-eni diff', 'delete the Pod']);
  }
  if (!supplied.attached) {
    return finding('eni-detached', {
      what: `by the supply that is recorded ${supplied.eniId}, which has ${ip} of ${name}, is not attached to this node, or is being detached`,
      fix: ['look at the ENI in the console and at `kubectl describe nec`'],
      subjects: [addressElement(ip), eniId(supplied.eniId)],
    });
  }
  if (address.state !== 'releasing') return undefined;
  return said(
    `${ip} of ${name} is being released by ipamd, by the supply that is recorded: the cloud will take it away, or has`,
    ['kubectl describe nec', 'delete the Pod'],
  );
}

/** Finds an address of a Pod in a supply, and the ENI that has it there. */
export function findSupplied(
  { enis }: Supply,
  ip: string,
): { readonly eni: SupplyEni; readonly address: SupplyAddress } | undefined {
  for (const eni of enis) {
    const address = eni.addresses.find((each) => each.ip === ip);
    if (address !== undefined) return { eni, address };
  }
  return undefined;
}

/** Returns the element of an address in the VPC. */
export function addressElement(ip: string): ElementId {
  return `cloud:${ip}`;
}
