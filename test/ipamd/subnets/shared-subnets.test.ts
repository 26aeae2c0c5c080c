import test from 'ava';
import type { NodeEniConfigStatus } from '../../../crd/node-eni-config-fields.ts';
import { decideSharedSubnets, type SharedFacts } from '../../../ipamd/subnets/decide-published.ts';
import { reportSharedSubnets } from '../../../ipamd/subnets/run-subnet-reports.ts';
import { silentLogger } from '../../../runtime/log.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';

/** One ENI with two addresses in a subnet: three in all. */
const STATUS = {
  eniInfos: [{ eniID: 'eni-1', subnetID: 's1', addresses: [{ ip: '10.0.0.5' }, { ip: '10.0.0.6' }] }],
} as unknown as NodeEniConfigStatus;

const factsWith = (freeIps: number): SharedFacts => ({
  subnets: [
    { subnetId: 's1', totalIps: 253, freeIps },
    { subnetId: 'other', totalIps: 253, freeIps: 1 },
  ],
  configured: ['s1'],
  statuses: [STATUS],
});

test('decideSharedSubnets: what is used and is of no NodeENIConfig, in subnets of the configuration', (t) => {
  t.deepEqual(decideSharedSubnets(factsWith(250)), []);
  t.deepEqual(decideSharedSubnets(factsWith(251)), [], 'an address that is not released in the cloud yet');
  t.deepEqual(decideSharedSubnets(factsWith(240)), [{ subnetId: 's1', foreignIps: 10 }]);
});

test('reportSharedSubnets: warns once, of what lasts, and again when it begins again', async (t) => {
  const clock = new VirtualClock();
  const messages: string[] = [];
  let facts: SharedFacts | undefined = factsWith(240);
  const ending = new AbortController();
  const running = reportSharedSubnets(
    {
      ...{ clock, log: silentLogger, config: { namespace: 'kube-system', configMap: 'tke-eni-ipamd' } },
      events: { record: ({ reason, message }) => void messages.push(`${reason}: ${message}`) },
      facts: () => facts,
    },
    ending.signal,
  );
  await clock.advance(240_000);
  facts = factsWith(250);
  await clock.advance(60_000);
  facts = factsWith(240);
  await clock.advance(270_000);
  t.deepEqual(messages, []);
  await clock.advance(600_000);
  t.is(messages.length, 1);
  t.regex(messages[0] ?? '', /^SubnetShared: s1 has 10 addresses that are not those of this cluster's ENIs/);
  facts = undefined;
  await clock.advance(60_000);
  t.is(messages.length, 1);
  facts = factsWith(250);
  await clock.advance(60_000);
  facts = factsWith(239);
  await clock.advance(400_000);
  t.is(messages.length, 2);
  ending.abort();
  await clock.advance(60_000);
  await running;
});
