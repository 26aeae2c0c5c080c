import { renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { parse, stringify } from 'yaml';
import { waitUntil } from '../support/wait-until.ts';
import { openTrial, type Trial } from './support/trial.ts';

type WrittenEni = Record<string, unknown> & { addresses: Record<string, unknown>[] };
type Written = { status: { eniInfos: [WrittenEni, WrittenEni]; supplyEpoch?: number } };

/** One wrong part of the first ENI, and what the agent says of it. */
type WrongPart = {
  readonly title: string;
  readonly edit: (eni: WrittenEni, facts: { readonly ip: string; readonly mac: string }) => void;
  readonly said: RegExp;
  /** The whole ENI is refused: default true. */
  readonly isWhole?: boolean;
};

const address = (ip: string) => (eni: WrittenEni) => {
  const [first] = eni.addresses;
  eni.addresses = [...eni.addresses.slice(1), { ...first, ip }];
};

const WRONG: readonly WrongPart[] = [
  {
    title: 'a subnet of all addresses',
    edit: (eni) => {
      eni['subnetCIDR'] = '0.0.0.0/0';
      address('10.0.1.1')(eni);
    },
    said: /its subnet 0\.0\.0\.0\/0 is larger than any/,
  },
  {
    title: "the node's address as the ENI's own",
    edit: (eni, { ip }) => Object.assign(eni, { primaryIP: ip, subnetCIDR: '10.0.0.0/16' }),
    said: /its own address \S+ is the node's own/,
  },
  {
    title: 'the MAC of the primary interface',
    edit: (eni, { mac }) => Object.assign(eni, { mac }),
    said: /that of the node's primary interface/,
  },
  {
    title: 'the MAC of lo',
    edit: (eni) => Object.assign(eni, { mac: '00:00:00:00:00:00' }),
    said: /is that of lo/,
  },
  {
    title: 'metadata',
    edit: (eni) =>
      Object.assign(eni, {
        subnetCIDR: '169.254.0.0/16',
        primaryIP: '169.254.0.9',
        gateway: '169.254.0.1',
        addresses: [],
      }),
    said: /169\.254\.0\.0\/16/,
  },
  { title: 'the gateway', edit: address('10.0.2.1'), said: /10\.0\.2\.1 refused: it is the gateway/, isWhole: false },
  { title: 'the network', edit: address('10.0.2.0'), said: /10\.0\.2\.0 refused: it is the network/, isWhole: false },
  { title: 'broadcast', edit: address('10.0.2.255'), said: /it is the broadcast address/, isWhole: false },
];

/** What the node has of its own: it must not change. */
async function ownState(trial: Trial): Promise<string> {
  const { netns } = trial.node;
  const settings = 'cd /proc/sys/net && cat ipv4/conf/lo/rp_filter ipv4/conf/eth0/rp_filter ipv6/conf/lo/accept_ra';
  return [
    await netns.run(['ip', '-o', 'address', 'show', 'dev', 'eth0']),
    await netns.run(['ip', '-o', 'address', 'show', 'dev', 'lo']),
    await netns.run(['sh', '-c', settings]),
  ].join('\n');
}

test('agent: refuses what a node must not get, says so, and serves with the rest', async (t) => {
  t.timeout(180_000);
  const trial = await openTrial({ ruleMode: 'compact', ipsPerEni: 3 });
  try {
    const { node, vpc } = trial;
    const [link] = await node.netns.ipJson('address', 'show', 'dev', 'eth0');
    const addresses = (link?.['addr_info'] ?? []) as readonly { readonly local: string }[];
    const facts = { ip: addresses[0]?.local ?? '', mac: String(link?.['address']) };
    const before = await ownState(trial);
    const path = join(node.dir, 'node.yaml');
    for (const { title, edit, said, isWhole = true } of WRONG) {
      const written = parse(vpc.nodeEniConfig('n1')) as Written;
      edit(written.status.eniInfos[0], facts);
      const loggedBefore = trial.agent.logs().length;
      writeFileSync(`${path}.new`, stringify(written));
      renameSync(`${path}.new`, path);
      const text = await waitUntil(() => said.exec(trial.agent.logs().slice(loggedBefore))?.[0], {
        what: `${title} is refused`,
        timeoutMs: 15_000,
        explain: () => trial.lastWords(),
      });
      t.regex(text, said);
      // The other ENI serves, and the node is reached and reaches others.
      const pod = await trial.addPod();
      t.true(await pod.netns.ping(vpc.outside.ip), title);
      if (isWhole) t.regex(pod.ip, /^10\.0\.1\./, `${title}: by the other ENI`);
      t.true(await node.netns.ping(vpc.outside.ip), title);
      await trial.delete(pod);
      t.is(await ownState(trial), before, title);
      trial.writeSupply();
    }
  } finally {
    await trial.close();
  }
});
