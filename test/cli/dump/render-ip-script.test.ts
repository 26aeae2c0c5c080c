import test from 'ava';
import { findDump } from '../../../cli/dump/find-dump.ts';
import { openIpNames } from '../../../cli/dump/open-ip-names.ts';
import { renderIpScript } from '../../../cli/dump/render-ip-script.ts';
import { ownersOf } from '../../../cli/node/find-owner.ts';
import { ifKnown } from '../../../cli/node/known.ts';
import { matchesGolden } from '../../support/golden.ts';
import { nodeFixture } from '../graph/node-fixture.ts';

const NODE = nodeFixture({ enis: 1, podsPerEni: 2, families: [4, 6] });
const TOPICS = ['rules', 'neigh', 'routes', 'addrs', 'links'] as const;
const NAMES = openIpNames('/nonexistent', new Map(NODE.host.links.map((link) => [link.ifindex, link.ifname])));

test('renderIpScript: writes what must be there first, first', (t) => {
  const facts = { ...NODE.host, whole: NODE.host };
  const nft = ifKnown(NODE.host.nft)?.ourTable ?? '';
  const script = renderIpScript(facts, NAMES, { topics: TOPICS, hasStandIns: true, isWhole: true, nft });
  matchesGolden(t, import.meta.url, 'node.sh', script);
});

test('renderIpScript: says of links that cannot be made that they must be there', (t) => {
  const facts = { ...NODE.host, whole: NODE.host };
  const script = renderIpScript(facts, NAMES, { topics: ['links'], hasStandIns: false, isWhole: true });
  t.regex(script, /# eth1 is a network card: it must be there before/);
  t.regex(script, /# eni\w+ is one end of a veth pair: it must be there before/);
  t.false(script.includes('link add'));
});

test('renderIpScript: takes no default rule away when only some rules were asked for', (t) => {
  const { parts } = findDump(NODE, ownersOf(NODE), { family: 6 });
  const facts = parts[0]?.facts ?? t.fail();
  const shown = { ...facts, whole: facts };
  const script = renderIpScript(shown, NAMES, { topics: ['rules'], hasStandIns: false, isWhole: false });
  t.false(script.includes('rule del'));
  t.false(script.includes('ip -4'));
  t.true(script.includes('ip -6'));
});

test('renderIpScript: is empty but for its head when there is nothing to make', (t) => {
  const facts = { links: [], addresses: [], routes: [], rules: [], neighs: [], whole: { links: [], addresses: [] } };
  const script = renderIpScript(facts, NAMES, { topics: ['routes'], hasStandIns: false, isWhole: false });
  t.is(
    script
      .split('\n')
      .filter((line) => line !== '' && !line.startsWith('#'))
      .join(),
    'set -e',
  );
});
