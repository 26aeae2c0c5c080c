import { closeSync, mkdirSync, openSync, rmSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { run } from '../../sim/support/run.ts';
import { awaitRefusal } from '../support/agent-process.ts';
import { describeLoss, startTraffic } from '../support/traffic.ts';
import { openTrial, type Trial } from './support/trial.ts';

/** Enough for the journal, its rollback journal and little else. */
const DISK_BYTES = 1_600_000;

/** A small file system in the place of the agent's state folder, which a test may fill to the last byte. */
class SmallDisk {
  #path = '';
  #held: number | undefined;

  async mountAt(path: string): Promise<void> {
    mkdirSync(path);
    await run(['mount', '-t', 'tmpfs', '-o', `size=${DISK_BYTES},mode=700`, 'tke-test', path]);
    this.#path = path;
  }

  /** Writes until there is no space left. */
  fill(): void {
    const fd = openSync(this.#filler, 'a');
    for (const size of [65_536, 4_096, 1]) {
      try {
        for (;;) writeSync(fd, Buffer.alloc(size));
      } catch (error) {
        if (!(error instanceof Error && 'code' in error && error.code === 'ENOSPC')) throw error;
      }
    }
    closeSync(fd);
  }

  free(): void {
    if (this.#held !== undefined) closeSync(this.#held);
    this.#held = undefined;
    if (this.#path !== '') rmSync(this.#filler, { force: true });
  }

  /** Deletes the journal and keeps its space taken, as any process that has it open does. */
  removeJournal(): void {
    this.#held = openSync(join(this.#path, 'journal.db'), 'r');
    rmSync(join(this.#path, 'journal.db'), { force: true });
    rmSync(join(this.#path, 'journal.db-journal'), { force: true });
  }

  async unmount(): Promise<void> {
    this.free();
    if (this.#path !== '') await run(['umount', '-l', this.#path]);
  }

  get #filler(): string {
    return join(this.#path, 'filler');
  }
}

const withSmallDisk = test.macro(
  async (t: ExecutionContext, body: (t: ExecutionContext, trial: Trial, disk: SmallDisk) => Promise<void>) => {
    t.timeout(180_000);
    const disk = new SmallDisk();
    let trial: Trial | undefined;
    try {
      trial = await openTrial({ ruleMode: 'compact', prepare: (dir) => disk.mountAt(join(dir, 'state')) });
      const pod = await trial.addPod();
      const outside = { netns: trial.vpc.outside.netns, ip: trial.vpc.outside.ip };
      const traffic = await startTraffic(pod, outside, { rate: 500 });
      try {
        await body(t, trial, disk);
      } finally {
        t.deepEqual(describeLoss(await traffic.finish()), [], 'no packet of a living Pod was lost');
      }
    } finally {
      await trial?.killAgent();
      await disk.unmount();
      await trial?.close();
    }
  },
);

/** An ADD that fails must say why in words a person can act on, and leave nothing behind. */
async function addFailsCleanly(t: ExecutionContext, trial: Trial): Promise<void> {
  const before = await trial.node.hostVeths();
  const pod = await trial.newPod();
  const { exitCode, error } = await trial.tryAdd(pod);
  t.is(exitCode, 1);
  t.is(error?.code, 5, `${error?.msg}`);
  t.regex(error?.msg ?? '', /cannot record the attachment: .*no space/);
  t.regex(error?.details ?? '', /free space/);
  t.deepEqual(await pod.netns.linkNames(), ['lo'], 'nothing is in the sandbox');
  t.deepEqual(await trial.node.hostVeths(), before, 'nothing is on the host');
}

test('agent: DELs work on a full disk, and so does a restart', withSmallDisk, async (t, trial, disk) => {
  const pods = [await trial.addPod(), await trial.addPod(), await trial.addPod()] as const;
  disk.fill();
  await trial.delete(pods[0]);
  await trial.settle('after a DEL on a full disk');
  await trial.killAgent();
  await trial.startAgent();
  await trial.settle('after a restart on a full disk');
  await trial.delete(pods[1]);
  await trial.settle('after a restart and a DEL on a full disk');
  // The journal holds space in reserve; an ADD may use of it what no DEL needs.
  const pod = await trial.newPod();
  const { exitCode } = await trial.tryAdd(pod);
  if (exitCode !== 0) await addFailsCleanly(t, trial);
  await trial.settle('after an ADD on a full disk');
  await trial.delete(pod);
  await trial.delete(pods[2]);
  await trial.settle('after the last DEL on a full disk');
  t.pass();
});

test(
  'agent: ADD fails with the reason when the journal is gone and there is no space for another',
  withSmallDisk,
  async (t, trial, disk) => {
    const gone = await trial.addPod();
    disk.removeJournal();
    disk.fill();
    await addFailsCleanly(t, trial);
    await addFailsCleanly(t, trial);
    const answer = await trial.tryDelete(gone);
    t.log(`DEL without a journal and without space: ${answer.stdout || 'success'}`);
    disk.free();
    await trial.delete(gone);
    const fresh = await trial.addPod();
    await trial.settle('when there is space again');
    t.true(await fresh.netns.ping(trial.vpc.outside.ip));
  },
);

test(
  'agent: does not serve from nothing when it starts on a full disk without a journal',
  withSmallDisk,
  async (t, trial, disk) => {
    await trial.killAgent();
    disk.removeJournal();
    disk.fill();
    await t.notThrowsAsync(awaitRefusal(await trial.startAgent({ until: 'started' }), /no space/));
    await trial.killAgent();
    disk.free();
    await trial.startAgent();
    await trial.settle('when there is space again');
    const fresh = await trial.addPod();
    await trial.settle('with a new Pod');
    await trial.delete(fresh);
  },
);
