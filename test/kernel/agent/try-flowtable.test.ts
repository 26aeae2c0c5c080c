import { spawnSync } from 'node:child_process';
import test from 'ava';
import { tryFlowtable } from '../../../agent/fast-path/open-fast-path.ts';
import { openNft } from '../../../dataplane/nft.ts';

/** Asks the kernel by nft alone, in a namespace of its own: with a device and a rule that learns, in a table of a name that is not ours. */
function hasFlowtables(): boolean {
  const input = `table inet probe {
 flowtable f { hook ingress priority 0; devices = { lo }; }
 chain c {
  type filter hook forward priority 0;
  flow add @f
 }
}
`;
  return spawnSync('unshare', ['--net', 'nft', '-f', '-'], { input, timeout: 60_000 }).status === 0;
}

test('tryFlowtable: says why where the kernel takes no flowtable, and nothing where it does', async (t) => {
  const problem = await tryFlowtable({ nft: openNft() });
  if (hasFlowtables()) {
    t.is(problem, undefined);
    return;
  }
  t.regex(
    problem ?? '',
    /^the kernel takes no flowtable of nftables \(\S.*\): load nf_flow_table_inet and nft_flow_offload, or update it$/,
  );
});

test('tryFlowtable: leaves no table in this namespace', async (t) => {
  const nft = openNft();
  const before = await nft.read('tke_eni_flows');
  await tryFlowtable({ nft });
  t.is(await nft.read('tke_eni_flows'), before);
});
