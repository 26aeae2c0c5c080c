import { bridgeCallIptables, sysctlName } from '../../sysctl/sysctl-key.ts';
import { finding } from '../catalogue/catalogue.ts';
import { sysctlId } from '../catalogue/element-id.ts';
import type { Finding } from '../catalogue/finding.ts';
import type { NetnsFacts } from '../node/node-facts.ts';

/** Finds that packets between the Pods of a bridge pass no iptables, by which Services are translated back. */
export function findBridgeFilterFault({ sysctls }: Pick<NetnsFacts, 'sysctls'>, bridge: string): Finding | undefined {
  const name = sysctlName(bridgeCallIptables());
  const value = sysctls.get(name);
  if (value === '1') return undefined;
  const is = value === undefined ? 'br_netfilter is not loaded' : `${name} is ${value}`;
  return finding('br-netfilter', {
    what: `${is}: a Pod of ${bridge} that asks another one by the address of a Service gets no answer`,
    fix: [
      ...(value === undefined ? ['modprobe br_netfilter'] : []),
      `sysctl -w ${name}=1`,
      'echo br_netfilter >/etc/modules-load.d/tke-eni.conf',
    ],
    subjects: [sysctlId(name)],
  });
}
