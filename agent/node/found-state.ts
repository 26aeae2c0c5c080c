import { isHostVethName } from '../../dataplane/host-veth-name.ts';
import { BRIDGE_IFINDEX } from '../../dataplane/numbers.ts';
import type { Operation } from '../../dataplane/operation.ts';
import { writeFileAtomically } from '../../runtime/atomic-file.ts';
import { boolean, decodeOrThrow, integer, list, optional, record, required, text } from '../../runtime/decode.ts';
import type { Logger } from '../../runtime/log.ts';
import { readRegularText } from '../../runtime/read-regular-file.ts';

/** Name of the file in the state folder: it must not outlive a reboot, which resets the kernel's settings. */
export const FOUND_STATE_FILE = 'found.json';

/** A kernel setting that we changed: its value before, and the value that we set. */
export type FoundSysctl = { readonly path: readonly string[]; readonly found: string; readonly set: string };

/** The settings of a link that we may change. */
export type LinkSettings = { readonly up?: boolean; readonly mtu?: number };

/** A link that we changed: its settings before, and those that we set. */
export type FoundLink = {
  readonly ifindex: number;
  readonly ifname: string;
  readonly found: LinkSettings;
  readonly set: LinkSettings;
};

/** An address that we added to a link. */
export type AddedAddress = { readonly ifindex: number; readonly ifname: string; readonly prefix: string };

/** The settings of the node before the first agent of this boot changed them, so that they can be restored. */
export type FoundState = {
  readonly bootId: string;
  readonly sysctls: readonly FoundSysctl[];
  readonly links: readonly FoundLink[];
  /** Absent while there is none. */
  readonly addresses?: readonly AddedAddress[];
};

/** One record of the state. */
export type FoundEntry = FoundSysctl | FoundLink | AddedAddress;

/** Records settings that operations replace. */
export type FoundStateRecorder = {
  /** Returns what is recorded. */
  current(): FoundState;
  /**
   * Records, before it is done, what an operation will replace. Only the first value of a setting counts. Never throws.
   */
  record(operation: Operation): void;
  /** Writes the file again when it is not there any more, or cannot be read. Never throws. */
  restore(): void;
  /** Erases records of `current()`: what they name is restored, or does not exist any more. Never throws. */
  forget(entries: readonly FoundEntry[]): void;
};

const settings = record({ up: optional(boolean), mtu: optional(integer(0, 0xffff_ffff)) }, 'ignore');
const decoder = record(
  {
    bootId: required(text()),
    sysctls: required(
      list(record({ path: required(list(text())), found: required(text()), set: required(text()) }, 'ignore')),
    ),
    links: required(
      list(
        record(
          {
            ifindex: required(integer(1, 0x7fff_ffff)),
            ifname: required(text()),
            found: required(settings),
            set: required(settings),
          },
          'ignore',
        ),
      ),
    ),
    addresses: optional(
      list(
        record(
          { ifindex: required(integer(1, 0x7fff_ffff)), ifname: required(text()), prefix: required(text()) },
          'ignore',
        ),
      ),
    ),
  },
  'ignore',
);

/**
 * Opens the file; the first recorded setting creates it. One of another boot, or a damaged one, is replaced.
 * @param bridgeName Returns the name of the bridge that we made; undefined while there is none.
 */
export function openFoundState(
  path: string,
  bootId: string,
  log: Logger,
  bridgeName: () => string | undefined = () => undefined,
): FoundStateRecorder {
  let known = readFoundState(path, bootId);
  let isWritten = known.sysctls.length + known.links.length + (known.addresses?.length ?? 0) > 0;
  const write = (next: FoundState): void => {
    if (next === known) return;
    known = next;
    writeKnown();
  };
  const writeKnown = (): void => {
    isWritten = true;
    try {
      writeFileAtomically(path, `${JSON.stringify(known)}\n`, 0o600);
    } catch (error) {
      log.warn('the former settings of this node are not recorded, an uninstallation cannot restore them', {
        path,
        error,
      });
    }
  };
  return {
    current: () => known,
    record: (operation) => {
      if (!isOfOurBridge(operation, bridgeName())) write(withOperation(known, operation));
    },
    restore: () => {
      if (isWritten && JSON.stringify(readFoundState(path, bootId)) !== JSON.stringify(known)) writeKnown();
    },
    forget: (entries) => write(without(known, new Set(entries))),
  };
}

/** Largest file that is read, bytes: it has a few lines for each interface. */
const MAX_BYTES = 16 * 1024 * 1024;

/** Reads the file; one that is missing, no regular file, damaged or of another boot counts as empty. */
export function readFoundState(path: string, bootId: string): FoundState {
  const nothing: FoundState = { bootId, sysctls: [], links: [] };
  try {
    const found = decodeOrThrow(decoder, JSON.parse(readRegularText(path, MAX_BYTES)), path);
    return found.bootId === bootId ? found : nothing;
  } catch {
    return nothing;
  }
}

/** Adds an operation to a state; returns `state` itself when it adds nothing. */
function withOperation(state: FoundState, operation: Operation): FoundState {
  if (operation.kind === 'set-sysctl') {
    const { path } = operation.key;
    // Host veths are deleted with their Pods: their settings need not be restored.
    if (path.some(isHostVethName)) return state;
    const before = state.sysctls.find((entry) => entry.path.join('/') === path.join('/'));
    // What was found is restored: the record stays until that is done.
    if (before?.set === operation.value || before?.found === operation.value) return state;
    const entry = { path, found: before?.found ?? operation.before, set: operation.value };
    return { ...state, sysctls: [...state.sysctls.filter((other) => other !== before), entry] };
  }
  if (operation.kind === 'add-address') return withAddress(state, operation.address);
  if (operation.kind !== 'set-link' || isHostVethName(operation.ifname)) return state;
  const { ifindex, ifname } = operation;
  const before = state.links.find((entry) => entry.ifindex === ifindex && entry.ifname === ifname);
  const change = upAndMtu(operation.change);
  if (before !== undefined && isRestoration(change, before.found)) return state;
  const found = { ...upAndMtu(operation.before), ...before?.found };
  const set = { ...before?.set, ...change };
  if (JSON.stringify({ found, set }) === JSON.stringify({ found: before?.found, set: before?.set })) return state;
  return { ...state, links: [...state.links.filter((other) => other !== before), { ifindex, ifname, found, set }] };
}

/** The bridge that we made had no settings before: an uninstallation deletes it. */
function isOfOurBridge(operation: Operation, name: string | undefined): boolean {
  if (operation.kind === 'set-sysctl') return name !== undefined && operation.key.path.includes(name);
  if (operation.kind === 'set-link') return operation.ifindex === BRIDGE_IFINDEX;
  return operation.kind === 'add-address' && operation.address.ifindex === BRIDGE_IFINDEX;
}

function withAddress(state: FoundState, { ifindex, ifname, prefix }: AddedAddress): FoundState {
  const { addresses = [] } = state;
  const isKnown = addresses.some((known) => known.ifindex === ifindex && known.prefix === prefix);
  return isKnown ? state : { ...state, addresses: [...addresses, { ifindex, ifname, prefix }] };
}

function without(state: FoundState, entries: ReadonlySet<FoundEntry>): FoundState {
  if (entries.size === 0) return state;
  const { addresses, ...rest } = state;
  const left = (addresses ?? []).filter((entry) => !entries.has(entry));
  return {
    ...rest,
    sysctls: state.sysctls.filter((entry) => !entries.has(entry)),
    links: state.links.filter((entry) => !entries.has(entry)),
    ...(left.length === 0 ? {} : { addresses: left }),
  };
}

function isRestoration(change: LinkSettings, found: LinkSettings): boolean {
  const { up = found.up, mtu = found.mtu } = change;
  return up === found.up && mtu === found.mtu;
}

function upAndMtu({ up, mtu }: LinkSettings): LinkSettings {
  return { ...(up === undefined ? {} : { up }), ...(mtu === undefined ? {} : { mtu }) };
}
