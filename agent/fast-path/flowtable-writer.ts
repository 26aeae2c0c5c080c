import type { HostState } from '../../dataplane/desired.ts';
import { flowtableOperations } from '../../dataplane/diff-flowtable.ts';
import { isNftName } from '../../dataplane/nft-table.ts';
import { type Operation, summarizeOperation } from '../../dataplane/operation.ts';
import type { Logger } from '../../runtime/log.ts';
import type { LinkAttacher } from './attach-new-links.ts';

/** A link of the host's namespace. */
type Link = { readonly ifindex: number; readonly ifname: string };

/** Dependencies of writing the flowtable between passes. */
type FlowtableWriterDeps = {
  readonly log: Logger;
  readonly kernel: {
    links(): readonly Link[];
    /** Returns those that failed. */
    apply(
      operations: readonly Operation[],
      onDone: (operation: Operation) => void,
    ): Promise<readonly { readonly error: unknown }[]>;
  };
  /** Plans the node for these links; undefined while there is no plan. */
  readonly planned: (links: readonly Link[]) => Pick<HostState, 'flowtable'> | undefined;
  readonly state: {
    readonly runExclusive: <T>(work: () => Promise<T>) => Promise<T>;
    readonly kickPass: (cause: string) => void;
  };
};

/** Writes the flowtable between passes of repair. */
export type FlowtableWriter = {
  /** Ends all flows: replaces the table by one with what is planned and here now. @throws what the kernel refuses */
  endFlows(): Promise<void>;
  /** Adds links to it, those that are due together by one run of nft. */
  readonly attacher: LinkAttacher;
};

/** So many links of one transaction, which is made of several messages. */
const MAX_LINKS = 512;
/** Longer than a run of nft takes: of a burst of ADDs there are some runs a second at most, milliseconds. */
const GATHER_MS = 250;

/** Opens the writer; it writes nothing by itself. */
export function openFlowtableWriter({ log, kernel, planned, state }: FlowtableWriterDeps): FlowtableWriter {
  const apply = async (operation: Operation): Promise<void> => {
    const [failure] = await kernel.apply([operation], () => {});
    if (failure !== undefined) throw failure.error;
  };
  return {
    endFlows: () =>
      // No pass meanwhile: it would compare with a table that is gone.
      state.runExclusive(async () => {
        const links = kernel.links();
        const { flowtable } = planned(links) ?? {};
        if (flowtable === undefined) return;
        const present = new Set(links.map(({ ifindex }) => ifindex));
        const missing = new Set(
          flowtable.devices.map(({ ifindex }) => ifindex).filter((ifindex) => !present.has(ifindex)),
        );
        for (const operation of flowtableOperations({ flowtable }, { links, nft: {} }, missing)) await apply(operation);
      }),
    attacher: {
      most: MAX_LINKS,
      gatherMs: GATHER_MS,
      attach: (added) =>
        state.runExclusive(async () => {
          const names = new Map(kernel.links().map(({ ifindex, ifname }) => [ifindex, ifname]));
          const devices = added.flatMap(({ ifindex }) => names.get(ifindex) ?? []).filter(isNftName);
          if (devices.length === 0) return;
          const operation: Operation = { kind: 'add-flow-devices', devices };
          try {
            await apply(operation);
            log.info('kernel changed', { request: summarizeOperation(operation), devices, cause: 'new links' });
          } catch (error) {
            log.debug('new links are not in the flowtable, a pass tries again', { devices, error });
            state.kickPass('devices of the flowtable');
          }
        }),
    },
  };
}
