import { spawn } from 'node:child_process';

/** Is how an executable ended. */
type Called = {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
  /** Standard output as JSON; undefined when it is empty. */
  readonly json: Record<string, unknown> | undefined;
};

/** Executes a file as a runtime does: the given environment alone, the conf on stdin, its end awaited. */
export function callExecutable(
  command: readonly [file: string, ...args: string[]],
  env: Readonly<Record<string, string>>,
  stdin: string,
): Promise<Called> {
  const [file, ...args] = command;
  const child = spawn(file, args, { env, stdio: ['pipe', 'pipe', 'pipe'] });
  const chunks = { stdout: [] as Buffer[], stderr: [] as Buffer[] };
  child.stdout.on('data', (chunk: Buffer) => chunks.stdout.push(chunk));
  child.stderr.on('data', (chunk: Buffer) => chunks.stderr.push(chunk));
  // A plugin that fails early closes its end before we have written all.
  child.stdin.on('error', () => {});
  child.stdin.end(stdin);
  return new Promise((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (code) => {
      const stdout = Buffer.concat(chunks.stdout).toString();
      const json = stdout === '' ? undefined : (JSON.parse(stdout) as Record<string, unknown>);
      resolve({ code, stdout, stderr: Buffer.concat(chunks.stderr).toString(), json });
    });
  });
}
