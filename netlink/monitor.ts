import { closeSync } from 'node:fs';
import { startInterval, startTimer, type Timer } from '../runtime/clock.ts';
import { ByteView } from './byte-view.ts';
import {
  decodeNftablesNotifications,
  decodeRouteNotifications,
  type MonitorEvent,
  OVERRUN,
} from './decode-notification.ts';
import { LibcError } from './errno.ts';
import { createEventQueue } from './event-queue.ts';
import { setsockopt } from './libc.ts';
import type { NetnsRef } from './link-message.ts';
import { withNetns } from './netns.ts';
import { type Watch, watchReadable } from './sigio.ts';
import { int32, openNetlinkFd, readDatagram } from './socket.ts';
import {
  NETLINK_ADD_MEMBERSHIP,
  NETLINK_NETFILTER,
  NETLINK_ROUTE,
  NFNLGRP_NFTABLES,
  SOL_NETLINK,
} from './uapi/netlink.ts';
import {
  RTNLGRP_IPV4_IFADDR,
  RTNLGRP_IPV4_NETCONF,
  RTNLGRP_IPV4_ROUTE,
  RTNLGRP_IPV4_RULE,
  RTNLGRP_IPV6_IFADDR,
  RTNLGRP_IPV6_NETCONF,
  RTNLGRP_IPV6_ROUTE,
  RTNLGRP_IPV6_RULE,
  RTNLGRP_LINK,
  RTNLGRP_NEIGH,
  RTNLGRP_TC,
} from './uapi/rtnetlink.ts';

export type { MonitorEvent } from './decode-notification.ts';

const ROUTE_GROUPS = {
  link: RTNLGRP_LINK,
  neigh: RTNLGRP_NEIGH,
  tc: RTNLGRP_TC,
  'ipv4-ifaddr': RTNLGRP_IPV4_IFADDR,
  'ipv4-route': RTNLGRP_IPV4_ROUTE,
  'ipv4-rule': RTNLGRP_IPV4_RULE,
  'ipv6-ifaddr': RTNLGRP_IPV6_IFADDR,
  'ipv6-route': RTNLGRP_IPV6_ROUTE,
  'ipv6-rule': RTNLGRP_IPV6_RULE,
  'ipv4-netconf': RTNLGRP_IPV4_NETCONF,
  'ipv6-netconf': RTNLGRP_IPV6_NETCONF,
} as const;

/** Multicast group of the kernel. */
export type MonitorGroup = keyof typeof ROUTE_GROUPS | 'nftables';

/** What to watch. */
type MonitorOptions = {
  readonly groups: readonly MonitorGroup[];
  /** Receive buffer of each socket, bytes; default 8 MiB, which holds 10,000 changed routes. */
  readonly rcvbufBytes?: number;
  /** Most events that are stored for a slow consumer; default 65536, then one overrun replaces them. */
  readonly queueCapacity?: number;
  /**
   * Milliseconds for which notifications are gathered before they are read, together and without further signals; default
   * 0: each is read at once.
   */
  readonly gatherMs?: number;
};

/** Changes of one network namespace as they occur: `for await (const event of monitor)`. The owner must close it. */
export type Monitor = AsyncIterable<MonitorEvent> & {
  /** Stops and ends all iterations. Idempotent. */
  close(): void;
  [Symbol.dispose](): void;
};

const DEFAULT_RCVBUF_BYTES = 8 << 20;
const DEFAULT_QUEUE_CAPACITY = 65_536;
/**
 * Size of the read buffer. One notification is one message; a route with many next hops or a link with many functions
 * is the largest.
 */
const READ_BUFFER_BYTES = 128 * 1024;
/** Most reads in one go. Then other work runs, or a flood of changes would block the event loop. */
const READS_PER_TICK = 256;
/** While a consumer waits, reads also at this interval: a lost signal delays events by no more than this. */
const SAFETY_READ_MS = 1000;

/**
 * Subscribes to changes in the current network namespace. While an iteration waits, the process stays alive. Main
 * thread only, because it uses SIGIO. @throws LibcError EPERM
 */
export function openMonitor(options: MonitorOptions): Monitor {
  const queue = createEventQueue<MonitorEvent>({
    capacity: options.queueCapacity ?? DEFAULT_QUEUE_CAPACITY,
    overrun: OVERRUN,
    onWaiting: (isWaiting) => setSafetyReads(isWaiting),
  });
  const { gatherMs = 0 } = options;
  const sources: Source[] = [];
  let timer: Timer | undefined;
  let gathering: Timer | undefined;
  let isOpen = true;
  const drainAll = () => {
    gathering = undefined;
    for (const source of sources) {
      source.drain();
    }
  };
  const gather = () => {
    if (gathering === undefined && isOpen) {
      for (const source of sources) {
        source.mute();
      }
      gathering = startTimer(drainAll, gatherMs);
    }
  };
  const onReadable = gatherMs > 0 ? gather : undefined;
  function setSafetyReads(isOn: boolean): void {
    timer?.cancel();
    timer = isOn && isOpen ? startInterval(drainAll, SAFETY_READ_MS) : undefined;
  }
  function close(): void {
    if (isOpen) {
      isOpen = false;
      gathering?.cancel();
      for (const source of sources) {
        source.close();
      }
      queue.close();
      setSafetyReads(false);
    }
  }
  try {
    const routeGroups = options.groups.flatMap((group) => (group === 'nftables' ? [] : [ROUTE_GROUPS[group]]));
    if (routeGroups.length > 0) {
      sources.push(
        openSource(NETLINK_ROUTE, routeGroups, { ...options, onReadable }, decodeRouteNotifications, queue.push),
      );
    }
    if (options.groups.includes('nftables')) {
      sources.push(
        openSource(
          NETLINK_NETFILTER,
          [NFNLGRP_NFTABLES],
          { ...options, onReadable },
          decodeNftablesNotifications,
          queue.push,
        ),
      );
    }
    return { [Symbol.asyncIterator]: () => queue[Symbol.asyncIterator](), close, [Symbol.dispose]: close };
  } catch (error) {
    close();
    throw error;
  }
}

/** Subscribes to changes in `netns`. @throws LibcError, NetnsError */
export function openMonitorIn(netns: NetnsRef, options: MonitorOptions): Monitor {
  return withNetns(netns, () => openMonitor(options));
}

type Source = {
  /** Reads all that is there, and starts the signals again. */
  drain(): void;
  /** Stops the signals until `drain`. */
  mute(): void;
  close(): void;
};

type SourceOptions = Pick<MonitorOptions, 'rcvbufBytes'> & {
  /** Called by a signal; absent: it is read at once. */
  readonly onReadable: (() => void) | undefined;
};

/** Shared by all monitors: a drain runs to its end before the next one begins. */
const readBuffer = new ByteView(new ArrayBuffer(READ_BUFFER_BYTES), READ_BUFFER_BYTES);

function openSource(
  protocol: number,
  groups: readonly number[],
  options: SourceOptions,
  decode: (view: ByteView, length: number) => readonly MonitorEvent[],
  push: (event: MonitorEvent) => void,
): Source {
  const { fd } = openNetlinkFd({
    protocol,
    isNonblocking: true,
    receiveBufferBytes: options.rcvbufBytes ?? DEFAULT_RCVBUF_BYTES,
  });
  let isOpen = true;
  let next: NodeJS.Immediate | undefined;
  let watch: Watch | undefined;
  let isMuted = false;
  // During a flood dozens of signals arrive in one turn of the event loop. While a further read is scheduled, they can
  // be ignored.
  const drain = () => {
    if (next === undefined) {
      readSome();
    }
  };
  const readSome = () => {
    next = undefined;
    for (let reads = 0; isOpen && reads < READS_PER_TICK; reads++) {
      const length = readOrEnd(fd, push);
      if (length < 0 && !isMuted) {
        return;
      }
      if (length < 0) {
        isMuted = false;
        watch?.resume();
        // Events from before the signal was armed.
        continue;
      }
      for (const event of decode(readBuffer, length)) {
        push(event);
      }
    }
    if (isOpen) {
      mute();
      next = setImmediate(readSome);
    }
  };
  const mute = () => {
    if (!isMuted) {
      watch?.pause();
      isMuted = true;
    }
  };
  const close = () => {
    if (isOpen) {
      isOpen = false;
      clearImmediate(next);
      watch?.end();
      closeSync(fd);
    }
  };
  try {
    for (const group of groups) {
      setsockopt(fd, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, int32(group));
    }
    watch = watchReadable(fd, options.onReadable ?? drain);
    // Events from before the signal was armed.
    drain();
    return { drain, mute, close };
  } catch (error) {
    close();
    throw error;
  }
}

/** Reads one datagram; -1 when there is none. Lost datagrams are reported, then reading continues. */
function readOrEnd(fd: number, push: (event: MonitorEvent) => void): number {
  try {
    return readDatagram(fd, readBuffer.u8);
  } catch (error) {
    if (error instanceof LibcError && error.code === 'EAGAIN') {
      return -1;
    }
    if (error instanceof LibcError && error.code === 'ENOBUFS') {
      push(OVERRUN);
      return 0;
    }
    throw error;
  }
}
