/**
 * Says how Node makes a single executable.
 * @param execArgv Node's own flags, which the executable then always runs with.
 * @param assets absolute paths of files that go into it, by name.
 * @see https://nodejs.org/api/single-executable-applications.html
 */
export function seaOptions(
  execArgv: readonly string[],
  assets: Readonly<Record<string, string>> = {},
): Readonly<Record<string, unknown>> {
  return {
    ...(Object.keys(assets).length === 0 ? {} : { assets }),
    disableExperimentalSEAWarning: true,
    // Saves compiling; a start-up snapshot costs more to read than it saves.
    useCodeCache: true,
    useSnapshot: false,
    execArgv,
    // Makes the executable deaf to NODE_OPTIONS, which on a node may say anything.
    execArgvExtension: 'none',
  };
}

/**
 * Are the flags of the Node that makes the code cache. Without a fixed seed V8's tables, and so the cache, differ from run to
 * run. V8 does not count this flag among those that a cache must agree on, as it does `--hash-seed`.
 */
export const GENERATOR_FLAGS: readonly string[] = ['--random-seed=1'];
