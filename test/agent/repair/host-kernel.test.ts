import test from 'ava';
import { openHostKernel } from '../../../agent/repair/host-kernel.ts';
import type { HostState } from '../../../dataplane/desired.ts';
import type { Kernel } from '../../../dataplane/kernel.ts';
import type { Nft } from '../../../dataplane/nft.ts';

const desire = (text: string): HostState => ({
  ...{ links: [], addresses: [], routes: [], rules: [], neighs: [], sysctls: [] },
  nft: { text },
});

/** A table whose listing is its text; somebody may change it behind our back. */
function openTable(listing: string | undefined) {
  const table = { listing, onRead: () => {} };
  const nft: Nft = {
    read: async () => {
      const seen = table.listing;
      await Promise.resolve();
      table.onRead();
      return seen;
    },
    canonical: async (text) => text,
    load: async (commands) => {
      table.listing = commands;
    },
  };
  // Only nftables is read here.
  return { table, host: openHostKernel({ nft } as Kernel) };
}

test('readNft: sees a change after forgetNft, and spares the question until then', async (t) => {
  const { table, host } = openTable('a');
  t.is((await host.readNft(desire('a'))).text, 'a');
  table.listing = 'b';
  t.is((await host.readNft(desire('a'))).text, 'a');
  host.invalidateNft();
  t.is((await host.readNft(desire('a'))).text, undefined);
});

test('readNft: looks anew when another table is wanted', async (t) => {
  const { table, host } = openTable('a');
  await host.readNft(desire('a'));
  table.listing = 'b';
  t.is((await host.readNft(desire('b'))).text, 'b');
});

test('readNft: does not trust a listing during which the table changed', async (t) => {
  const { table, host } = openTable('a');
  table.onRead = () => {
    table.listing = 'b';
    table.onRead = () => {};
    host.invalidateNft();
  };
  await host.readNft(desire('a'));
  t.is((await host.readNft(desire('a'))).text, undefined);
});

test('apply: looks anew after it loaded a table', async (t) => {
  const { host } = openTable(undefined);
  t.deepEqual(await host.readNft(desire('a')), {});
  await host.apply([{ kind: 'load-nft', commands: 'a' }], () => {});
  t.is((await host.readNft(desire('a'))).text, 'a');
});
