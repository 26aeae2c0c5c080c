import { constants } from 'node:os';
import { runInBackground } from '../runtime/background.ts';
import type { BatchItem } from './batch.ts';
import type { Conn } from './conn.ts';
import { batchItem } from './exchange.ts';
import { NetlinkError } from './netlink-error.ts';

/** Deletes links from the thread pool. */
export type BackgroundDeletes = {
  delete(ifindex: number): Promise<void>;
  /** Waits for running deletions, then closes their sockets; those not begun reject. */
  close(): void;
};

type Job = { readonly item: BatchItem; resolve(): void; reject(error: NetlinkError): void };

/**
 * Most sockets, and so pool threads, that deletions use at once: two of the pool's four, so that file access continues
 * during a burst. More would hardly be faster, because the kernel takes its rtnl lock one by one.
 */
const LANES = 2;

/** Creates the queue; sockets are opened on demand, in the namespace of `conn`. */
export function createBackgroundDeletes(conn: Conn): BackgroundDeletes {
  const waiting: Job[] = [];
  let lanes = 0;
  let isClosed = false;

  async function runLane(lane: Conn): Promise<void> {
    try {
      for (let job = waiting.shift(); job !== undefined; job = waiting.shift()) {
        await lane.changeInBackground(job.item).then(job.resolve, job.reject);
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
        waiting.push({ item, resolve, reject });
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

function closedError(item: BatchItem): NetlinkError {
  return new NetlinkError({ errno: constants.errno.EBADF, ...item.fail(), detail: 'the connection is closed' });
}
