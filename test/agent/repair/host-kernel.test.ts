import test from 'ava';
import { openHostKernel } from '../../../agent/repair/host-kernel.ts';
import type { HostState } from '../../../dataplane/desired.ts';
import type { Kernel } from '../../../dataplane/kernel.ts';
import type { Nft } from '../../../dataplane/nft.ts';
import { FLOWTABLE_TABLE } from '../../../dataplane/numbers.ts';

const listingOf = (chain: string): string => `table inet tke_eni {\n\tchain ${chain} {\n\t}\n}`;
const [A, B] = [listingOf('a'), listingOf('b')];

const desire = (text: string): HostState => ({
  ...{ links: [], addresses: [], routes: [], rules: [], neighs: [], sysctls: [] },
  nft: { text },
});

/** A table whose listing is its text, beside that of the flowtable; somebody may change both behind our back. */
function openTable(listing: string | undefined, flows?: string) {
  const table = { listing, flows, flowReads: 0, onRead: () => {} };
  const nft: Nft = {
    read: async (name) => {
      if (name === FLOWTABLE_TABLE) {
        table.flowReads++;
        return table.flows;
      }
      const seen = table.listing;
      await Promise.resolve();
      table.onRead();
      return seen;
    },
    canonical: async (text) => text,
    load: async (commands) => {
      if (commands.includes(FLOWTABLE_TABLE)) table.flows = undefined;
      else table.listing = commands;
    },
  };
  // Only nftables is read here.
  return { table, host: openHostKernel({ nft } as Kernel) };
}

test('readNft: sees a change after forgetNft, and spares the question until then', async (t) => {
  const { table, host } = openTable(A);
  t.is((await host.readNft(desire(A))).text, A);
  table.listing = B;
  t.is((await host.readNft(desire(A))).text, A);
  host.invalidateNft();
  t.is((await host.readNft(desire(A))).text, undefined);
});

test('readNft: looks again when another table is wanted', async (t) => {
  const { table, host } = openTable(A);
  await host.readNft(desire(A));
  table.listing = B;
  t.is((await host.readNft(desire(B))).text, B);
});

test('readNft: does not trust a listing during which the table changed', async (t) => {
  const { table, host } = openTable(A);
  table.onRead = () => {
    table.listing = B;
    table.onRead = () => {};
    host.invalidateNft();
  };
  await host.readNft(desire(A));
  t.is((await host.readNft(desire(A))).text, undefined);
});

test('apply: looks again after it loaded a table', async (t) => {
  const { host } = openTable(undefined);
  t.deepEqual(await host.readNft(desire(A)), {});
  await host.apply([{ kind: 'load-nft', commands: A }], () => {});
  t.is((await host.readNft(desire(A))).text, A);
});

const FLOWS = 'table inet tke_eni_flows {\n\tflowtable ft {\n\t\tdevices = { eth0, "eth5" }\n\t}\n}\n';
const withFlows = (text: string): HostState => ({ ...desire(A), flowtable: { text, devices: [] } });

test('readNft: reads the flowtable with its devices, and again when nftables changed', async (t) => {
  const { table, host } = openTable(A, FLOWS);
  const wanted = withFlows('table inet tke_eni_flows {\n\tflowtable ft {\n\t}\n}\n');
  t.like((await host.readNft(wanted)).flowtable, { isCurrent: true, devices: ['eth0', 'eth5'] });
  t.false((await host.readNft(withFlows('other'))).flowtable?.isCurrent);
  table.flows = undefined;
  t.not((await host.readNft(withFlows('other'))).flowtable, undefined);
  host.invalidateNft();
  t.is((await host.readNft(withFlows('other'))).flowtable, undefined);
});

test('readNft: looks once for a flowtable that is not wanted, and once more after its end', async (t) => {
  const { table, host } = openTable(A, FLOWS);
  const found = await host.readNft(desire(A));
  t.like(found.flowtable, { isCurrent: false, devices: ['eth0', 'eth5'] });
  host.invalidateNft();
  await host.readNft(desire(A));
  t.is(table.flowReads, 1);
  await host.apply([{ kind: 'delete-flowtable', before: '' }], () => {});
  t.deepEqual(await host.readNft(desire(A)), { text: A, restore: found.restore ?? '' });
  host.invalidateNft();
  await host.readNft(desire(A));
  t.is(table.flowReads, 2);
});
