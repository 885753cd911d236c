// What `msmemscope analyze --json` prints (docs/analyze.schema.json), as far as the page reads it.

export interface Frame {
  file: string | null;
  line: number | null;
  end_line: number | null;
  function: string;
  module: string | null;
  kind: 'python' | 'native';
  user: boolean;
  inferred: boolean;
  text: string | null;
}

export interface Holder {
  root: string;
  path: { kind: string; name: string; type: string; len: number | null }[];
  blocks: number;
  bytes: number;
  text: string;
}

export interface Verdict {
  id: string;
  cause: string;
  layer: string | null;
  device: string | null;
  processes: number[];
  confidence: number;
  bytes_total: number;
  bytes_per_step: number | null;
  bytes_per_second: number | null;
  blocks: number;
  first_step: number | null;
  last_step: number | null;
  site: Frame | null;
  kept_at: Frame | null;
  sites: { site: Frame; bytes: number; blocks: number }[];
  stack: Frame[];
  holders: Holder[];
  owner: string | null;
  evidence: Record<string, unknown>;
  advice: string;
}

export interface Diagnosis {
  inputs: {
    path: string;
    kind: string;
    process: { host: string; rank: number | null; pid: number; argv0: string } | null;
    ended: string;
    complete: boolean;
    dropped: number;
  }[];
  devices: string[];
  steps: {
    source: string;
    count: number;
    first: number | null;
    last: number | null;
    warmup_until: number | null;
  };
  verdicts: Verdict[];
  suspects: Verdict[];
  suppressed: Verdict[];
}
