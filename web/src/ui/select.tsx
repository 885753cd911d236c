interface SelectProps<T extends string> {
  label: string;
  value: T;
  options: readonly (readonly [T, string])[];
  onChange: (value: T) => void;
  title?: string;
  hideLabel?: boolean;
}

/** A labelled choice: the browser's own control, so that keyboard and screen readers know it. */
export function Select<T extends string>({ label, value, options, onChange, title, hideLabel }: SelectProps<T>) {
  return (
    <label class="select" title={title ?? label}>
      {hideLabel ? null : <span>{label}</span>}
      <select
        aria-label={label} value={value}
        onChange={(event) => {
          const chosen = options.find(([option]) => option === event.currentTarget.value);
          if (chosen) onChange(chosen[0]);
        }}
      >
        {options.map(([option, text]) => (
          <option key={option} value={option} selected={option === value}>{text}</option>
        ))}
      </select>
    </label>
  );
}
