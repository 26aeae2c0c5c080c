import test from 'ava';
import fc from 'fast-check';
import { openIpNames } from '../../../../cli/commands/dump/open-ip-names.ts';
import { renderIpScript } from '../../../../cli/commands/dump/render-ip-script.ts';
import { selectDump } from '../../../../cli/commands/dump/select-dump.ts';
import { buildOwnerIndex } from '../../../../inspection/node/build-owner-index.ts';
import { ifKnown } from '../../../../inspection/node/known.ts';
import { UserError } from '../../../../runtime/user-error.ts';
import { matchesGolden } from '../../../support/golden.ts';
import { assertLaw } from '../../../support/law.ts';
import { nodeFixture } from '../graph/node-fixture.ts';

const NODE = nodeFixture({ enis: 1, podsPerEni: 2, families: [4, 6] });
const TOPICS = ['rules', 'neigh', 'routes', 'addrs', 'links'] as const;
const NAMES = openIpNames('/nonexistent', new Map(NODE.host.links.map((link) => [link.ifindex, link.ifname])));

test('renderIpScript: writes what must be there first, first', (t) => {
  const facts = { ...NODE.host, unfiltered: NODE.host };
  const nft = ifKnown(NODE.host.nft)?.ourTable ?? '';
  const script = renderIpScript(facts, NAMES, { topics: TOPICS, hasStandIns: true, isUnfiltered: true, nft });
  matchesGolden(t, import.meta.url, 'node.sh', script);
});

test('renderIpScript: says of links that cannot be made that they must be there', (t) => {
  const facts = { ...NODE.host, unfiltered: NODE.host };
  const script = renderIpScript(facts, NAMES, { topics: ['links'], hasStandIns: false, isUnfiltered: true });
  t.regex(script, /# eth1 is a network card: it must be there before/);
  t.regex(script, /# eni\w+ is one end of a veth pair: it must be there before/);
  t.false(script.includes('link add'));
});

test('renderIpScript: takes no default rule away when only some rules were asked for', (t) => {
  const { namespaces } = selectDump(NODE, buildOwnerIndex(NODE), { family: 6 });
  const facts = namespaces[0]?.facts ?? t.fail();
  const shown = { ...facts, unfiltered: facts };
  const script = renderIpScript(shown, NAMES, { topics: ['rules'], hasStandIns: false, isUnfiltered: false });
  t.false(script.includes('rule del'));
  t.false(script.includes('ip -4'));
  t.true(script.includes('ip -6'));
});

test('renderIpScript: is empty but for its head when there is nothing to make', (t) => {
  const facts = {
    links: [],
    addresses: [],
    routes: [],
    rules: [],
    neighs: [],
    unfiltered: { links: [], addresses: [] },
  };
  const script = renderIpScript(facts, NAMES, { topics: ['routes'], hasStandIns: false, isUnfiltered: false });
  t.is(
    script
      .split('\n')
      .filter((line) => line !== '' && !line.startsWith('#'))
      .join(),
    'set -e',
  );
});

/** What a shell runs of a script, and what it hands to the commands: here-documents read as sh(1) does. */
function readScript(script: string): { readonly run: readonly string[]; readonly given: readonly string[] } {
  const run: string[] = [];
  const given: string[] = [];
  let end: string | undefined;
  for (const line of script.trimEnd().split('\n')) {
    if (end === undefined) {
      run.push(line);
      end = /<<'(\w+)'$/.exec(line)?.[1];
    } else if (line === end) end = undefined;
    else given.push(line);
  }
  return { run, given };
}

test('renderIpScript: runs nothing that a Pod or anybody else wrote into an alias, a label, a rule or a comment', async (t) => {
  const hostile = fc.oneof(
    fc.string(),
    fc.string({ unit: 'grapheme' }),
    fc.constantFrom('x\nEND_OF_LINKS\nreboot', 'END_OF_NFT', '\nEND_OF_IPV4\n', 'a"\'b c', "it's", '#', '\\', '"q', ''),
  );
  const [link] = NODE.host.links.filter(({ ifname }) => ifname === 'eth1');
  const [address] = NODE.host.addresses.filter(({ ifindex }) => ifindex === link?.ifindex);
  const [rule] = NODE.host.rules;
  if (link === undefined || address === undefined || rule === undefined) return t.fail();
  await assertLaw(t, (t) =>
    fc.property(fc.tuple(hostile, hostile, hostile, hostile, hostile), ([ifname, ifalias, label, iifname, nft]) => {
      const links = [{ ...link, ifname, ifalias }];
      const facts = {
        links,
        addresses: [{ ...address, label }],
        routes: [],
        rules: [{ ...rule, iifname }],
        neighs: [],
      };
      const names = openIpNames('/nonexistent', new Map([[link.ifindex, ifname]]));
      const parts = { topics: TOPICS, hasStandIns: true, isUnfiltered: false, nft };
      const { run, given } = readScript(renderIpScript({ ...facts, unfiltered: facts }, names, parts));
      t.deepEqual(
        run.filter(
          (line) => !/^(#!\/bin\/sh|# Made by .*|set -e|ip( -[46])? -batch - <<'\w+'|nft -f - <<'\w+')$/.test(line),
        ),
        [],
      );
      const batch = given.slice(0, given.length - nft.trimEnd().split('\n').length);
      t.deepEqual(
        batch.filter((line) => !/^(# |(link|address|route|neigh|rule) )[\P{Cc}]*$/u.test(line)),
        [],
      );
    }),
  );
});

test('renderIpScript: keeps a link whose alias cannot be said, and says so', (t) => {
  const links = NODE.host.links
    .filter(({ ifname }) => ifname === 'eth1')
    .map((link) => ({ ...link, ifalias: 'rack #7' }));
  const facts = { links, addresses: [], routes: [], rules: [], neighs: [], unfiltered: { links, addresses: [] } };
  const script = renderIpScript(facts, NAMES, { topics: ['links'], hasStandIns: false, isUnfiltered: false });
  t.regex(script, /^link set dev eth1 .* up$/m);
  t.regex(script, /^# left out, .*alias "rack #7"$/m);
});

test('selectDump: an ENI or table that is not there by its name may be so for want of the record, and it says so', (t) => {
  const facts = { ...NODE, agent: { kind: 'unknown', why: 'there is no journal', next: 'start the agent' } as const };
  for (const filter of [{ eni: 'eni-nobody' }, { table: 'nobody' }]) {
    const error = t.throws(() => selectDump(facts, buildOwnerIndex(facts), filter), { instanceOf: UserError });
    t.is(error?.code, 'NOT_FOUND');
    t.regex(error?.message ?? '', /nobody.*not known: there is no journal/);
  }
});

test('renderIpScript: takes no IPv6 rule away for a node without IPv6', (t) => {
  const { links, addresses, rules } = NODE.host;
  const only4 = { links, addresses: addresses.filter(({ family }) => family === 2), routes: [], neighs: [] };
  const facts = { ...only4, rules: rules.filter(({ family }) => family === 2) };
  const parts = { topics: ['rules'], hasStandIns: false, isUnfiltered: true } as const;
  t.false(renderIpScript({ ...facts, unfiltered: facts }, NAMES, parts).includes('ip -6'));
  const with6 = { ...facts, unfiltered: NODE.host };
  t.regex(renderIpScript(with6, NAMES, parts), /ip -6 [\s\S]*rule del pref 32766/);
});
