import type { AttachedEni } from '../../../sim/vpc/nic.ts';
import type { AttachedPod } from './scene-node.ts';
import type { Trial } from './trial.ts';

/** What of a node one Pod's packets touch, as iproute2 tells it while all is well. */
export type FaultScene = {
  readonly trial: Trial;
  readonly pod: AttachedPod;
  readonly hostVeth: string;
  readonly eni: AttachedEni;
  /** Routing table of the ENI. */
  readonly table: string;
  /** `<mark>/<mask>` of the ENI's rule; compact mode. */
  readonly fwmark: string;
  /** Table of an ENI that is not the Pod's. */
  readonly otherTable: string;
};

/** Looks at a node whose network is as it should be. @throws Error when it is not */
export async function readFaultScene(trial: Trial, pod: AttachedPod): Promise<FaultScene> {
  const { node, vpc } = trial;
  const eni = await vpc.eni(vpc.eniOf(pod.ip) ?? '');
  const routes = await node.netns.ipJson('-N', 'route', 'show', 'table', 'all', `${pod.ip}/32`);
  // One that refuses packets leads to no link.
  const route = routes.find(({ dev }) => dev !== undefined);
  const tables = await Promise.all(
    trial.enis.map(async ({ eniId }) => {
      const { ifname } = await vpc.eni(eniId);
      const [byDefault] = await node.netns.ipJson('-N', 'route', 'show', 'table', 'all', 'default', 'dev', ifname);
      return { eniId, table: String(byDefault?.['table']) };
    }),
  );
  const table = tables.find(({ eniId }) => eniId === eni.eniId)?.table ?? '';
  const rules = await node.netns.ipJson('-N', 'rule', 'show', 'pref', '1536');
  const rule = rules.find((candidate) => String(candidate['table']) === table);
  return {
    trial,
    pod,
    hostVeth: String(route?.['dev']),
    eni,
    table,
    fwmark: `${String(rule?.['fwmark'])}/${String(rule?.['fwmask'])}`,
    otherTable: tables.find(({ eniId }) => eniId !== eni.eniId)?.table ?? '',
  };
}
