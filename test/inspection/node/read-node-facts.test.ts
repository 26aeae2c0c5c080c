import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { readAgentFacts } from '../../../inspection/node/read-agent-facts.ts';
import { readInside } from '../../../inspection/node/read-insides.ts';
import { readIpNames } from '../../../inspection/node/read-ip-names.ts';
import { readNodeFacts } from '../../../inspection/node/read-node-facts.ts';
import { withNodeNetns } from '../../../inspection/node/with-node-netns.ts';
import { UserError } from '../../../runtime/user-error.ts';
import { createTempDir } from '../../support/temp-dir.ts';

test('readAgentFacts: says that there is no journal, and what to do', (t) => {
  const facts = readAgentFacts('/nonexistent/state');
  t.is(facts.kind, 'unknown');
  if (facts.kind === 'unknown') {
    t.regex(facts.why, /\/nonexistent\/state\/journal\.db/);
    t.regex(facts.next, /start the agent.*--state-dir/);
  }
});

test('readAgentFacts: says that a journal is damaged, and does not throw', (t) => {
  const dir = createTempDir('facts');
  try {
    writeFileSync(dir.join('journal.db'), 'no database at all');
    const facts = readAgentFacts(dir.path);
    t.is(facts.kind, 'unknown');
    if (facts.kind === 'unknown') t.regex(facts.why, /journal\.db/);
  } finally {
    dir.close();
  }
});

test('readNodeFacts: reads this machine without agent, and leaves out what was not asked for', async (t) => {
  const global = { netns: undefined, stateDir: '/nonexistent', hostRoot: '/' };
  const facts = await readNodeFacts({ global }, { nft: false, sysctls: false, insides: 'none' });
  t.true(facts.host.links.some(({ ifname }) => ifname === 'lo'));
  t.true(facts.host.rules.some(({ priority }) => priority === 32766));
  t.is(facts.host.nft.kind, 'unknown');
  t.is(facts.host.sysctls.size, 0);
  t.is(facts.agent.kind, 'unknown');
  t.is(facts.host.tableNames.get(3999), 'tke-pods');
  t.is(facts.host.tableNames.get(254), 'main');
  const more = await readNodeFacts({ global }, { nft: false, insides: 'none' });
  t.regex(more.host.sysctls.get('net.ipv4.ip_forward') ?? '', /^[01]$/);
  t.regex(more.host.sysctls.get('net.ipv4.conf.lo.rp_filter') ?? '', /^[012]$/);
});

test('readInside: parts a namespace that is gone from one that was unmounted and left its file', (t) => {
  const dir = createTempDir('inside');
  try {
    const path = join(dir.path, 'cni-1');
    const reading = { hostRoot: '/', sysctls: false };
    const why = (): string => {
      const inside = readInside(path, reading);
      return inside.kind === 'unknown' ? inside.why : 'known';
    };
    t.regex(why(), /cni-1 is gone$/);
    writeFileSync(path, '');
    t.regex(why(), /cni-1 was unmounted$/);
  } finally {
    dir.close();
  }
});

test('withNodeNetns: names a namespace that is not there', (t) => {
  const error = t.throws(() => withNodeNetns({ netns: 'tke-no-such', hostRoot: '/' }, () => 1), {
    instanceOf: UserError,
  });
  t.is(error?.code, 'NOT_FOUND');
  t.regex(error?.message ?? '', /\/run\/netns\/tke-no-such/);
});

test('readIpNames: later files and folders win, comments and nonsense say nothing', (t) => {
  const dir = createTempDir('names');
  try {
    const etc = join(dir.path, 'etc/iproute2');
    const share = join(dir.path, 'usr/share/iproute2');
    for (const folder of [`${etc}/rt_tables.d`, share]) mkdirSync(folder, { recursive: true });
    writeFileSync(join(share, 'rt_tables'), '254 main\n100 old\n');
    writeFileSync(join(etc, 'rt_tables'), '# comment\n100\tnew # why\n0x65 hexed\nnonsense\n7\n');
    writeFileSync(join(etc, 'rt_tables.d/ours.conf'), '102 ours\n');
    writeFileSync(join(etc, 'rt_tables.d/ours.bak'), '103 not-read\n');
    t.deepEqual(
      [...readIpNames(dir.path, 'rt_tables')],
      [
        [254, 'main'],
        [100, 'new'],
        [101, 'hexed'],
        [102, 'ours'],
      ],
    );
  } finally {
    dir.close();
  }
});
