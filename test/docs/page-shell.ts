import { chmodSync, writeFileSync } from 'node:fs';
import { createServer, type Socket } from 'node:net';
import { childEnv } from '../../sim/support/child-env.ts';
import { run } from '../../sim/support/run.ts';
import { createTempDir } from '../support/temp-dir.ts';

/** How a program that a page calls ends. */
export type Answer = { readonly code: number; readonly stdout: string; readonly stderr: string };
/** Answers for a program of a page, in this process. */
type Program = (argv: readonly string[]) => Promise<Answer>;

/** Asks this process, and ends as it says. */
const ASKING = `
const socket = require('node:net').connect(process.argv[2]);
let text = '';
socket.setEncoding('utf8').on('data', (part) => { text += part; });
socket.on('end', () => {
  const { code, stdout, stderr } = JSON.parse(text);
  process.stdout.write(stdout);
  process.stderr.write(stderr);
  process.exitCode = code;
});
socket.end(JSON.stringify(process.argv.slice(3)));
`;
/** Longest wait for a line: hours of a virtual clock may pass meanwhile. */
const LINE_MS = 240_000;

/** A shell that runs the lines of a page as they stand there; programs that would meet a cluster are answered for here. */
export type PageShell = {
  /** Runs a line; ends at the first failure. @returns what it printed. @throws RunError */
  sh(line: string): Promise<string>;
  close(): Promise<void>;
};

/** Opens a shell. The programs are asked one after another, also in a pipeline. */
export async function openPageShell(programs: Readonly<Record<string, Program>>): Promise<PageShell> {
  const folder = createTempDir('page');
  const [path, script] = [folder.join('socket'), folder.join('ask.cjs')];
  let before: Promise<unknown> = Promise.resolve();
  const answer = async (text: string): Promise<Answer> => {
    const [name = '', ...argv] = JSON.parse(text) as readonly string[];
    const asked = before.then(() => programs[name]?.(argv));
    before = asked.catch(() => {});
    const failed = (error: Error): Answer => ({ code: 1, stdout: '', stderr: `${error.message}\n` });
    return (await asked.catch(failed)) ?? failed(new Error(`no program ${name}`));
  };
  const serve = (socket: Socket): void => {
    let text = '';
    socket.setEncoding('utf8').on('data', (part: string) => {
      text += part;
    });
    socket.on('end', () => void answer(text).then((one) => socket.end(JSON.stringify(one))));
    socket.on('error', () => {});
  };
  const server = createServer({ allowHalfOpen: true }, serve);
  await new Promise<void>((resolve) => server.listen(path, resolve));
  writeFileSync(script, ASKING);
  for (const name of Object.keys(programs)) {
    writeFileSync(folder.join(name), `#!/bin/sh\nexec '${process.execPath}' '${script}' '${path}' ${name} "$@"\n`);
    chmodSync(folder.join(name), 0o755);
  }
  const env = childEnv();
  return {
    sh: (line) =>
      run(['sh', '-ec', line], { env: { ...env, PATH: `${folder.path}:${env['PATH']}` }, timeoutMs: LINE_MS }),
    close: async () => {
      await new Promise((resolve) => server.close(resolve));
      folder.close();
    },
  };
}
