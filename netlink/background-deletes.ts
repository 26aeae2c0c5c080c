import { constants } from 'node:os';
import { runInBackground } from '../runtime/background.ts';
import type { BatchItem } from './batch.ts';
import type { Conn } from './conn.ts';
import { batchItem } from './exchange.ts';
import { LINK } from './link-message.ts';
import { NetlinkError } from './netlink-error.ts';
import { beginMessage, endMessage } from './nlmsghdr.ts';
import { NLM_F_REQUEST } from './uapi/netlink.ts';
import { RTM_DELLINK } from './uapi/rtnetlink.ts';

/** Deletes links from the thread pool. */
export type BackgroundDeletes = {
  delete(ifindex: number): Promise<void>;
  /** Waits for running deletions, then closes their sockets; those not begun reject. */
  close(): void;
};

type Job = {
  readonly ifindex: number;
  readonly item: BatchItem;
  resolve(): void;
  reject(error: NetlinkError): void;
};

/**
 * Most sockets, and so pool threads, that deletions use at once: two of the pool's four, so that file access continues
 * during a burst.
 */
const LANES = 2;

/**
 * Most links that are deleted together. Nearly all of a deletion is the kernel's wait until no processor uses the link
 * any more, some 15 ms, and one wait serves all of them. Meanwhile other changes of links wait.
 */
const MAX_TOGETHER = 64;

/** Groups of links that are about to be deleted begin here. No other link may be in one: the group is deleted. */
const FIRST_GROUP = 0x7465_0000;
const GROUPS = 0x1_0000;

/** Creates the queue; sockets are opened on demand, in the namespace of `conn`. */
export function createBackgroundDeletes(conn: Conn): BackgroundDeletes {
  const waiting: Job[] = [];
  let lanes = 0;
  let isClosed = false;
  let batches = 0;

  async function runLane(lane: Conn): Promise<void> {
    try {
      while (waiting.length > 0) {
        const [first, ...others] = waiting.splice(0, MAX_TOGETHER);
        if (first === undefined) return;
        // By process too: another one that deletes links here may be in the middle of it.
        const group = FIRST_GROUP + ((process.pid + batches++) % GROUPS);
        const left = others.length === 0 ? [first] : await deleteTogether(lane, group, [first, ...others]);
        for (const job of left) {
          await lane.changeInBackground(job.item).then(job.resolve, job.reject);
        }
      }
    } finally {
      lanes -= 1;
      lane.close();
    }
  }

  return {
    async delete(ifindex) {
      const item = batchItem({ object: 'link', verb: 'delete', spec: { ifindex } });
      if (isClosed) {
        throw closedError(item);
      }
      const lane = lanes < LANES ? conn.openSibling(item) : undefined;
      const result = new Promise<void>((resolve, reject) => {
        waiting.push({ ifindex, item, resolve, reject });
      });
      if (lane !== undefined) {
        lanes += 1;
        runInBackground('deleting links', runLane(lane));
      }
      await result;
    },
    close() {
      isClosed = true;
      for (const job of waiting.splice(0)) {
        job.reject(closedError(job.item));
      }
    },
  };
}

/**
 * Puts links into a group of their own and deletes the group, in one write: a process that is killed has done both or
 * nothing. @returns the jobs that are not done: their links are to be deleted one by one
 */
async function deleteTogether(lane: Conn, group: number, jobs: readonly [Job, ...Job[]]): Promise<readonly Job[]> {
  const [first, ...others] = jobs.map(({ ifindex }) =>
    batchItem({ object: 'link', verb: 'set', spec: { ifindex, group } }),
  );
  if (first === undefined) return jobs;
  try {
    const outcomes = await lane.executeInBackground([first, ...others, deleteGroup(group)]);
    if (outcomes.at(-1)?.kind !== 'ok') return jobs;
    // What could not be put into the group, for its link is gone, gets the answer that its own deletion gets.
    // Index 0 names no link; the kernel takes it for all links of the group.
    const isDone = ({ ifindex }: Job, at: number): boolean => ifindex > 0 && outcomes[at]?.kind === 'ok';
    for (const [at, job] of jobs.entries()) if (isDone(job, at)) job.resolve();
    return jobs.filter((job, at) => !isDone(job, at));
  } catch {
    // The exchange failed, on a socket that was replaced. What each deletion says then is the answer.
    return jobs;
  }
}

function deleteGroup(group: number): BatchItem {
  return {
    codec: LINK,
    encode(writer, seq, extraFlags) {
      const start = beginMessage(writer, RTM_DELLINK, NLM_F_REQUEST | extraFlags, seq);
      LINK.write(writer, { group });
      endMessage(writer, start);
    },
    fail: () => ({ op: 'RTM_DELLINK', request: `ip link del group ${group}` }),
  };
}

function closedError(item: BatchItem): NetlinkError {
  return new NetlinkError({ errno: constants.errno.EBADF, ...item.fail(), detail: 'the connection is closed' });
}
